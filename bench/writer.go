package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"outboxrelay/envelope"
)

// lanes is how many writers work at once. Each has an operation that it takes from its first event to its last.
const lanes = 20

// writer writes events at a steady pace, each in a transaction of its own, and remembers when they were committed.
type writer struct {
	pool    *pgxpool.Pool
	tenants []envelope.Scope
	rate    int // events a second

	mu      sync.Mutex
	commits map[string]time.Time // by event id: when COMMIT had returned
}

// write writes for some time, for the tenants in turn. It keeps to the clock: who is late goes on without a pause. Without
// tenants it lets the time pass.
func (w *writer) write(ctx context.Context, span time.Duration) error {
	if len(w.tenants) == 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(span):
			return nil
		}
	}
	start := time.Now()
	period := lanes * time.Second / time.Duration(w.rate)
	failures := make(chan error, lanes)
	for lane := range lanes {
		first := start.Add(period * time.Duration(lane) / lanes)
		go func() { failures <- w.lane(ctx, lane, first, period, start.Add(span)) }()
	}
	var failure error
	for range lanes {
		if err := <-failures; err != nil && failure == nil {
			failure = fmt.Errorf("write events: %w", err)
		}
	}
	return failure
}

// lane writes for each of its tenants in turn: every twentieth.
func (w *writer) lane(ctx context.Context, lane int, next time.Time, period time.Duration, end time.Time) error {
	var operation uuid.UUID
	turn := lane
	for version := 1; next.Before(end); next = next.Add(period) {
		timer := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
		var err error
		tenant := w.tenants[turn%len(w.tenants)]
		if version == 1 {
			operation, err = application.Admit(ctx, w.pool, tenant)
		} else {
			err = application.Advance(ctx, w.pool, tenant, operation, "retry_scheduled", "ready")
		}
		if err != nil {
			return err
		}
		w.committed(operation, version)
		if version = version%versions + 1; version == 1 {
			turn += lanes
		}
	}
	return nil
}

func (w *writer) committed(operation uuid.UUID, version int) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commits[fmt.Sprintf("%s:%d", operation, version)] = now
}
