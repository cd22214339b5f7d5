package monitor

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// Pool shows a pool of database connections. stat is asked at each scrape.
func (m *Metrics) Pool(stat func() *pgxpool.Stat) { m.registry.MustRegister(newPool(stat)) }

// pool is a collector of what pgx tells of its pool.
type pool struct {
	stat  func() *pgxpool.Stat
	shown []shown
}

// shown is one figure of a pool.
type shown struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(*pgxpool.Stat) float64
}

func newPool(stat func() *pgxpool.Stat) *pool {
	p := &pool{stat: stat}
	show := func(kind prometheus.ValueType, name, help string, labels prometheus.Labels, read func(*pgxpool.Stat) float64) {
		p.shown = append(p.shown, shown{prometheus.NewDesc(name, help, nil, labels), kind, read})
	}
	for state, read := range map[string]func(*pgxpool.Stat) int32{
		"idle": (*pgxpool.Stat).IdleConns, "used": (*pgxpool.Stat).AcquiredConns, "opening": (*pgxpool.Stat).ConstructingConns,
	} {
		show(prometheus.GaugeValue, "relay_database_connections", "Connections to the database by what they do.",
			prometheus.Labels{"state": state}, func(s *pgxpool.Stat) float64 { return float64(read(s)) })
	}
	show(prometheus.GaugeValue, "relay_database_max_connections", "The most connections to the database.", nil,
		func(s *pgxpool.Stat) float64 { return float64(s.MaxConns()) })
	show(prometheus.CounterValue, "relay_database_connects_total", "Connections to the database that were opened.", nil,
		func(s *pgxpool.Stat) float64 { return float64(s.NewConnsCount()) })
	show(prometheus.CounterValue, "relay_database_acquires_total", "How often a connection was taken from the pool.", nil,
		func(s *pgxpool.Stat) float64 { return float64(s.AcquireCount()) })
	show(prometheus.CounterValue, "relay_database_acquire_waits_total", "How often one was waited for, because none was idle.", nil,
		func(s *pgxpool.Stat) float64 { return float64(s.EmptyAcquireCount()) })
	show(prometheus.CounterValue, "relay_database_acquire_wait_seconds_total", "How long one was waited for.", nil,
		func(s *pgxpool.Stat) float64 { return s.EmptyAcquireWaitTime().Seconds() })
	return p
}

// Describe implements [prometheus.Collector].
func (p *pool) Describe(descs chan<- *prometheus.Desc) {
	for _, s := range p.shown {
		descs <- s.desc
	}
}

// Collect implements [prometheus.Collector].
func (p *pool) Collect(metrics chan<- prometheus.Metric) {
	stat := p.stat()
	for _, s := range p.shown {
		metrics <- prometheus.MustNewConstMetric(s.desc, s.kind, s.read(stat))
	}
}
