package main

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/internal/monitor"
	"outboxrelay/store"
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
	// Parked events that the page tells of.
	parkedOfScope = 10
	parkedOfAll   = 100
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
	p.metrics.Slots(p.relay.Health().Slots)
	database, broker := p.databaseError(), p.brokerError()
	p.metrics.Database(database == nil)
	p.metrics.BrokerPaused(broker != nil)
	p.board.Healthy(monitor.Health{Live: p.live(), Database: database, Broker: broker})
}

func (p *process) measureBacklog(ctx context.Context) {
	scopes := p.currentScopes()
	p.board.Scopes(scopes)
	var parked []monitor.Parked
	for scopes := range slices.Chunk(scopes, measureAtOnce) {
		waiting, err := p.store.Waiting(ctx, scopes)
		if err != nil {
			return // the relay's own calls tell of a database that fails
		}
		for i, scope := range scopes {
			if !waiting[i] {
				p.board.Counted(scope, monitor.Counts{}, nil)
				continue
			}
			st, err := p.store.Status(ctx, p.settings.Namespace, scope)
			if err != nil {
				return
			}
			p.board.Counted(scope, counts(st), cmp.Or(p.sink.Ready(scope), p.relay.Stalled(scope)))
			if !sleep(ctx, measurePause) {
				return
			}
			if most := min(parkedOfScope, parkedOfAll-len(parked)); st.Parked > 0 && most > 0 && p.settings.HTTPDetails {
				events, err := p.store.Reasons(ctx, p.settings.Namespace, scope, most)
				if err != nil || !sleep(ctx, measurePause) {
					return
				}
				parked = appendParked(parked, scope, events)
			}
		}
		if !sleep(ctx, measurePause) {
			return
		}
	}
	sum := p.board.Round(parked)
	p.metrics.Backlog(monitor.Backlog{Pending: sum.Waiting(), Parked: sum.Parked, OldestDue: seconds(sum.OldestDue)})
}

// appendParked adds a scope's parked events to those that the page shows.
func appendParked(parked []monitor.Parked, scope envelope.Scope, events []*store.Event) []monitor.Parked {
	tenant := monitor.NewScopeStatus(scope, monitor.Counts{}).Tenant
	for _, e := range events {
		p := monitor.Parked{Tenant: tenant, ID: e.ID, Operation: e.OperationID.String(), Attempts: e.Attempts, Reason: e.Error}
		if hasYear(e.CreatedAt) {
			at := e.CreatedAt.UTC()
			p.Created = &at
		}
		parked = append(parked, p)
	}
	return parked
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
