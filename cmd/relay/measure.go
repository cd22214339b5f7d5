package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"outboxrelay/internal/monitor"
)

const (
	// healthEvery is between two looks at how the servers are, which cost nothing.
	healthEvery = time.Second
	// measureEvery is between two rounds of backlog figures, which cost a query for each scope
	// that has any, and one for so many scopes that may have none.
	measureEvery  = 10 * time.Second
	measureAtOnce = 1000
	// measurePause spreads the queries of many scopes.
	measurePause = 10 * time.Millisecond
)

// measure keeps the gauges fresh until ctx ends. Those of very many scopes take their time, which those of the servers don't wait
// for.
func (p *process) measure(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { every(ctx, healthEvery, p.measureHealth) })
	both.Go(func() {
		var counted time.Time
		every(ctx, healthEvery, func() {
			if p.schemaError() == nil && time.Since(counted) >= measureEvery {
				p.measureBacklog(ctx)
				counted = time.Now()
			}
		})
	})
	both.Wait()
}

// every does something at once, and again after each pause, until ctx ends.
func every(ctx context.Context, pause time.Duration, do func()) {
	for {
		do()
		if !sleep(ctx, pause) {
			return
		}
	}
}

func (p *process) measureHealth() {
	p.metrics.Database(p.schemaError() == nil && p.relay.Health().Database == nil)
	_, err := p.sink.Health()
	p.metrics.Slots(p.relay.Health().Slots)
	p.metrics.BrokerPaused(err != nil || p.anyScopeReady() != nil)
}

func (p *process) measureBacklog(ctx context.Context) {
	var sum monitor.Backlog
	for scopes := range slices.Chunk(p.currentScopes(), measureAtOnce) {
		waiting, err := p.store.Waiting(ctx, scopes)
		if err != nil {
			return // the relay's own calls tell of a database that fails
		}
		for i, scope := range scopes {
			if !waiting[i] {
				continue
			}
			st, err := p.store.Status(ctx, p.settings.Namespace, scope)
			if err != nil {
				return
			}
			sum.Pending += st.Due + st.InFlight + st.Delayed
			sum.Parked += st.Parked
			sum.OldestDue = max(sum.OldestDue, st.OldestDue)
			if !sleep(ctx, measurePause) {
				return
			}
		}
		if !sleep(ctx, measurePause) {
			return
		}
	}
	p.metrics.Backlog(sum)
}

// sleep is false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
