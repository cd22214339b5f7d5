// Package monitor shows what a relay does, over HTTP: the probes, Prometheus metrics,
// /status, and a page for people. Everything is answered from memory.
//
// The metrics: relay_events_total by outcome, relay_claim_duration_seconds,
// relay_publish_duration_seconds, relay_settle_duration_seconds,
// relay_delivery_lag_seconds, relay_oldest_due_age_seconds, relay_pending_events,
// relay_parked_events, relay_inflight_events, relay_scopes, relay_broker_paused,
// relay_database_up, relay_tenants_file_ok, relay_slots, relay_slot_fences_total,
// relay_recovered_events_total and relay_build_info; relay_database_* of the pool of
// connections, and relay_kafka_* of the client. None has a label that names a tenant, or a
// topic, whose name may hold one.
package monitor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"outboxrelay/relay"
)

// Metrics observes a relay for Prometheus. It is safe for concurrent use.
type Metrics struct {
	relay.Unobserved
	registry registry
	client   *Client

	events                                       *prometheus.CounterVec
	claim, publish, settle, lag                  prometheus.Histogram
	oldestDue, pending, parked, inFlight, scopes prometheus.Gauge
	brokerPaused, databaseUp, tenantsFile        prometheus.Gauge
	slots                                        *prometheus.GaugeVec
	fences, recovered                            *prometheus.CounterVec
}

// The values of relay_events_total's label.
const (
	exported     = "exported"
	retried      = "retried"
	parked       = "parked"
	deadLettered = "dead_lettered"
	discarded    = "discarded"
	claimLost    = "claim_lost"
)

// The values of the labels about slots.
const (
	marked   = "marked"
	released = "released"
)

var fencings = map[relay.Fencing]string{relay.FencedOwn: "taken", relay.FencedOther: "helped", relay.FencedByOther: "suffered"}

// Backlog is the sum over all scopes of what waits. Counts are capped by scope.
type Backlog struct {
	Pending, Parked int
	OldestDue       time.Duration
}

// NewMetrics makes the metrics of one relay.
func NewMetrics(version, goVersion string, scopes int) *Metrics {
	m := &Metrics{registry: registry{prometheus.NewRegistry()}}
	gauge, histogram := m.registry.gauge, m.registry.histogram
	m.events = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "relay_events_total", Help: "Events by what became of them.",
	}, []string{"outcome"})
	for _, outcome := range []string{exported, retried, parked, deadLettered, discarded, claimLost} {
		m.events.WithLabelValues(outcome) // there from the start, so that a rate can be taken
	}
	m.fences = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "relay_slot_fences_total", Help: "In exactly-once mode, slots that were taken, fenced for others, and lost to others.",
	}, []string{"outcome"})
	m.recovered = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "relay_recovered_events_total", Help: "In exactly-once mode, events of which the ledger told what had become of them.",
	}, []string{"outcome"})
	m.slots = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "relay_slots", Help: "In exactly-once mode, slots that are held, that wait to be taken, and that need a person to decide.",
	}, []string{"state"})
	for _, kind := range fencings {
		m.fences.WithLabelValues(kind)
	}
	for _, outcome := range []string{marked, released} {
		m.recovered.WithLabelValues(outcome)
	}
	m.Slots(relay.SlotsHealth{})
	m.registry.MustRegister(m.events, m.fences, m.recovered, m.slots, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	m.claim = histogram("relay_claim_duration_seconds", "Time of a claim, also of one that found nothing.", calls)
	m.publish = histogram("relay_publish_duration_seconds", "Time from handing a claim's events to the client to the last answer.", calls)
	m.settle = histogram("relay_settle_duration_seconds", "Time of a settlement.", calls)
	m.lag = histogram("relay_delivery_lag_seconds", "From created_at to exported_at, both by the database's clock.",
		prometheus.ExponentialBuckets(0.001, 2, 26)) // 1 ms to 9 h

	m.oldestDue = gauge("relay_oldest_due_age_seconds", "For how long the event that is due longest has been so.")
	m.pending = gauge("relay_pending_events", "Events that wait or are in flight; counted up to 10,000 a scope and kind.")
	m.parked = gauge("relay_parked_events", "Parked events; counted up to 10,000 a scope.")
	m.inFlight = gauge("relay_inflight_events", "Events that this relay holds claims on.")
	m.scopes = gauge("relay_scopes", "Configured scopes.")
	m.brokerPaused = gauge("relay_broker_paused", "1 while no event can be sent.")
	m.databaseUp = gauge("relay_database_up", "1 while the database answers.")
	m.tenantsFile = gauge("relay_tenants_file_ok", "1 while the tenants' file is good, or there is none.")
	m.scopes.Set(float64(scopes))
	m.tenantsFile.Set(1)

	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "relay_build_info", Help: "1, with what the program was built from.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": goVersion},
	})
	info.Set(1)
	m.registry.MustRegister(info)
	m.client = newClient(m.registry)
	return m
}

// Client is to be told what the relay's Kafka clients do.
func (m *Metrics) Client() *Client { return m.client }

// Claimed implements [relay.Observer].
func (m *Metrics) Claimed(c relay.Claim, took time.Duration) {
	m.claim.Observe(took.Seconds())
	m.inFlight.Add(float64(len(c.Rows)))
}

// Published implements [relay.Observer].
func (m *Metrics) Published(_ relay.Claim, took time.Duration) { m.publish.Observe(took.Seconds()) }

// Settled implements [relay.Observer].
func (m *Metrics) Settled(_ relay.Claim, verdicts []relay.Verdict, results []relay.Result, took time.Duration) {
	m.settle.Observe(took.Seconds())
	for i, v := range verdicts {
		if o := outcome(v, results[i]); o != "" {
			m.events.WithLabelValues(o).Inc()
		}
		if v.Exported && results[i].Status != relay.Lost {
			m.lag.Observe(results[i].Lag.Seconds())
		}
	}
}

// Released implements [relay.Observer].
func (m *Metrics) Released(c relay.Claim) { m.inFlight.Sub(float64(len(c.Rows))) }

// Fenced implements [relay.Observer].
func (m *Metrics) Fenced(_ relay.Slot, how relay.Fencing) {
	m.fences.WithLabelValues(fencings[how]).Inc()
}

// Recovered implements [relay.Observer].
func (m *Metrics) Recovered(_ relay.Claim, verdicts []relay.Verdict) {
	for _, v := range verdicts {
		outcome := released
		if v.Exported || v.DeadLettered {
			outcome = marked
		}
		m.recovered.WithLabelValues(outcome).Inc()
	}
}

// Slots takes fresh figures of the slots of exactly-once mode.
func (m *Metrics) Slots(s relay.SlotsHealth) {
	m.slots.WithLabelValues("held").Set(float64(s.Held))
	m.slots.WithLabelValues("waiting").Set(float64(s.Waiting - s.Stuck))
	m.slots.WithLabelValues("stuck").Set(float64(s.Stuck))
}

// outcome is the label of a settled row, "" for one that was given back unsent.
func outcome(v relay.Verdict, r relay.Result) string {
	switch {
	case v.Refund && r.Status != relay.Lost:
		return ""
	case r.Status == relay.Lost:
		return claimLost
	case v.Exported:
		return exported
	case v.DeadLettered:
		return deadLettered
	case v.Wait == relay.Park:
		return parked
	default:
		return retried
	}
}

// Backlog takes fresh figures of what waits.
func (m *Metrics) Backlog(b Backlog) {
	m.pending.Set(float64(b.Pending))
	m.parked.Set(float64(b.Parked))
	m.oldestDue.Set(b.OldestDue.Seconds())
}

// Database tells whether the database answers.
func (m *Metrics) Database(up bool) { m.databaseUp.Set(number(up)) }

// BrokerPaused tells whether no event can be sent.
func (m *Metrics) BrokerPaused(paused bool) { m.brokerPaused.Set(number(paused)) }

// TenantsFile tells whether the tenants' file is good.
func (m *Metrics) TenantsFile(ok bool) { m.tenantsFile.Set(number(ok)) }

// Scopes tells how many scopes are configured.
func (m *Metrics) Scopes(n int) { m.scopes.Set(float64(n)) }

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
