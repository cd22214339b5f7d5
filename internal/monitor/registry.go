package monitor

import "github.com/prometheus/client_golang/prometheus"

// calls are the buckets of what a server is asked: 0.5 ms to 16 s.
var calls = prometheus.ExponentialBuckets(0.0005, 2, 16)

// registry makes metrics that it holds.
type registry struct{ *prometheus.Registry }

func (r registry) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	r.MustRegister(g)
	return g
}

func (r registry) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	r.MustRegister(c)
	return c
}

func (r registry) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	r.MustRegister(h)
	return h
}
