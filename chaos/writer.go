package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"outboxrelay/envelope"
)

const (
	// lanes is how many writers write at once, each one operation after the other.
	lanes = 20
	// longest is the most transitions of an ordinary operation; every tenth has twenty times as many.
	longest = 12
	// rest is how long a writer waits after a failure, as when the database is away.
	rest = 100 * time.Millisecond
)

// application's writers. What they know of an operation is how many transitions were committed for certain.
type writers struct {
	pool *pgxpool.Pool
	seed uint64
	rate int

	committed, failed atomic.Int64

	mu    sync.Mutex
	known map[uuid.UUID]int
}

// write writes until ctx ends.
func (w *writers) write(ctx context.Context) {
	var group sync.WaitGroup
	for i := range lanes {
		group.Go(func() { w.lane(ctx, i) })
	}
	group.Wait()
}

func (w *writers) lane(ctx context.Context, number int) {
	r := rand.New(rand.NewPCG(w.seed, uint64(number)+1))
	all := scopes()
	ticker := time.NewTicker(lanes * time.Second / time.Duration(w.rate))
	defer ticker.Stop()
	for ctx.Err() == nil {
		length := 1 + r.IntN(longest)
		if r.IntN(10) == 0 {
			length *= 20
		}
		w.operation(ctx, ticker.C, all[r.IntN(len(all))], length)
	}
}

// operation writes one operation, a transition a tick.
func (w *writers) operation(ctx context.Context, tick <-chan time.Time, scope envelope.Scope, length int) {
	var id uuid.UUID
	for id == uuid.Nil {
		if !await(ctx, tick) {
			return
		}
		admitted, err := application.Admit(ctx, w.pool, scope)
		if w.count(ctx, admitted, err) {
			id = admitted
		}
	}
	for range length - 1 {
		if !await(ctx, tick) {
			return
		}
		// After a failure it goes on from whatever the database has.
		w.count(ctx, id, application.Advance(ctx, w.pool, scope, id, "retry_scheduled", "ready"))
	}
}

// count notes whether a transition was committed. After a failure it may have been nevertheless.
func (w *writers) count(ctx context.Context, operation uuid.UUID, err error) bool {
	if err != nil {
		w.failed.Add(1)
		await(ctx, time.After(rest))
		return false
	}
	w.committed.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known[operation]++
	return true
}

// await returns false if ctx ends before something comes.
func await(ctx context.Context, something <-chan time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-something:
		return true
	}
}
