package main

import (
	"context"
	"time"

	"outboxrelay/internal/monitor"
)

const (
	// healthEvery is between two looks at how the servers are, which cost nothing.
	healthEvery = time.Second
	// measureEvery is between two rounds of backlog figures, which cost a query a scope.
	measureEvery = 10 * time.Second
	// measurePause spreads the queries of many scopes.
	measurePause = 10 * time.Millisecond
)

// measure keeps the gauges fresh until ctx ends.
func (p *process) measure(ctx context.Context) {
	var counted time.Time
	for {
		p.measureHealth()
		if p.schemaError() == nil && time.Since(counted) >= measureEvery {
			p.measureBacklog(ctx)
			counted = time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(healthEvery):
		}
	}
}

func (p *process) measureHealth() {
	p.metrics.Database(p.schemaError() == nil && p.relay.Health().Database == nil)
	_, err := p.sink.Health()
	p.metrics.BrokerPaused(err != nil || p.anyScopeReady() != nil)
}

func (p *process) measureBacklog(ctx context.Context) {
	var sum monitor.Backlog
	for _, scope := range p.currentScopes() {
		st, err := p.store.Status(ctx, p.settings.Namespace, scope)
		if err != nil {
			return // the relay's own calls tell of a database that fails
		}
		sum.Pending += st.Due + st.InFlight + st.Delayed
		sum.Parked += st.Parked
		sum.OldestDue = max(sum.OldestDue, st.OldestDue)
		select {
		case <-ctx.Done():
			return
		case <-time.After(measurePause):
		}
	}
	p.metrics.Backlog(sum)
}
