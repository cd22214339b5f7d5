package main

import (
	"context"
	"time"

	"outboxrelay/internal/monitor"
)

const (
	// measureEvery is between two rounds of backlog figures, which cost a query a scope.
	measureEvery = 10 * time.Second
	// measurePause spreads the queries of many scopes.
	measurePause = 10 * time.Millisecond
)

// measure keeps the gauges of the backlog fresh until ctx ends.
func (p *process) measure(ctx context.Context) {
	for {
		p.measureOnce(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(measureEvery):
		}
	}
}

func (p *process) measureOnce(ctx context.Context) {
	health := p.relay.Health()
	p.metrics.Database(p.schemaError() == nil && health.Database == nil)
	_, err := p.sink.Health()
	p.metrics.BrokerPaused(err != nil || p.anyScopeReady() != nil)
	if p.schemaError() != nil {
		return
	}
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
