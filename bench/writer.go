package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"outboxrelay/envelope"
)

// lanes is how many writers work at once. Each has an operation that it takes from its first event to its last.
const lanes = 20

// writer writes events at a steady pace, each in a transaction of its own, and remembers when they were begun and committed.
type writer struct {
	pool    *pgxpool.Pool
	tenants []envelope.Scope
	rate    int           // events a second
	enough  chan struct{} // once closed, writers end before their next event; nil if they go on to the end of their time

	mu      sync.Mutex
	begins  map[string]time.Time // by event id: when BEGIN was about to be sent
	commits map[string]time.Time // by event id: when COMMIT had returned
}

// newWriter has a connection for each lane. Close its pool after use.
func (d database) newWriter(ctx context.Context, tenants []envelope.Scope, rate int) (*writer, error) {
	pool, err := d.pool(ctx)
	if err != nil {
		return nil, err
	}
	return &writer{pool: pool, tenants: tenants, rate: rate, begins: map[string]time.Time{}, commits: map[string]time.Time{}}, nil
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
		case <-w.enough:
			timer.Stop()
			return nil
		case <-timer.C:
		}
		var err error
		began := time.Now()
		tenant := w.tenants[turn%len(w.tenants)]
		if version == 1 {
			operation, err = application.Admit(ctx, w.pool, tenant)
		} else {
			err = application.Advance(ctx, w.pool, tenant, operation, "retry_scheduled", "ready")
		}
		if err != nil {
			return err
		}
		w.committed(operation, version, began)
		if version = version%versions + 1; version == 1 {
			turn += lanes
		}
	}
	return nil
}

func (w *writer) committed(operation uuid.UUID, version int, began time.Time) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	id := fmt.Sprintf("%s:%d", operation, version)
	w.begins[id], w.commits[id] = began, now
}

// during writes until do returns. Do's context ends when writing fails.
func (w *writer) during(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.enough = make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		err := w.write(ctx, patience)
		if err != nil {
			cancel(err)
		}
		ended <- err
	}()
	err := do(ctx)
	close(w.enough)
	return errors.Join(err, <-ended)
}

// took is what each transaction took that began and was committed within a time.
func (w *writer) took(from, to time.Time) (all []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, committed := range w.commits {
		if began := w.begins[id]; !began.Before(from) && !committed.After(to) {
			all = append(all, committed.Sub(began))
		}
	}
	return all
}
