package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

// world is a database with everybody at work on it at once.
type world struct {
	*fixture
	t      *testing.T
	seed   uint64
	ours   []envelope.Scope // no exporter but ours
	mixed  envelope.Scope   // Python's exporter works here as well, which breaks the order
	theirs envelope.Scope   // Python's alone

	calm atomic.Bool // nobody writes any more and nothing fails
	log  deliveries  // of our scopes
	any  deliveries  // of the others, in whatever order
	hold holders

	claims, rows, late, lost, rescued atomic.Int64
}

// holders knows which claim has which row for how long.
type holders struct {
	mu    sync.Mutex
	until map[int64]time.Time
}

// take errs if a claim of somebody else still runs.
func (h *holders) take(claim relay.Claim) error {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, row := range claim.Rows {
		if until := h.until[row.ID]; now.Before(until) {
			return fmt.Errorf("row %d was claimed %s before its former lease ended", row.ID, until.Sub(now))
		}
		h.until[row.ID] = claim.Expires
	}
	return nil
}

// leave tells that a claim's rows are about to be settled; others may have them next.
func (h *holders) leave(claim relay.Claim, verdicts []relay.Verdict) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, v := range verdicts {
		if h.until[v.Row.ID].Equal(claim.Expires) {
			delete(h.until, v.Row.ID)
		}
	}
}

// random is an actor's own source, the same for the same seed.
func (w *world) random(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, actor)) }

func upTo(rng *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(most)))
}

// pause waits at most so long.
func pause(ctx context.Context, rng *rand.Rand, most time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(upTo(rng, most)):
	}
}

// fail reports an actor's error, unless the world is ending.
func (w *world) fail(ctx context.Context, who string, err error) {
	if err != nil && ctx.Err() == nil {
		w.t.Errorf("seed %d: %s: %v", w.seed, who, err)
	}
}

// write begins operations and goes on with those it began, one of them again and again.
func (w *world) write(ctx context.Context, rng *rand.Rand) {
	type operation struct {
		id    uuid.UUID
		scope envelope.Scope
	}
	scopes := append([]envelope.Scope{w.mixed, w.theirs}, w.ours...)
	var open []operation
	for ctx.Err() == nil && !w.calm.Load() {
		var err error
		if len(open) < 5 || rng.IntN(3) == 0 {
			op := operation{scope: scopes[rng.IntN(len(scopes))]}
			if op.id, err = app.Admit(ctx, w.admin, op.scope); err == nil {
				open = append(open, op)
			}
		} else {
			i := max(len(open)-1-rng.IntN(10), 0)
			if rng.IntN(4) == 0 {
				i = 0
			}
			err = app.Advance(ctx, w.admin, open[i].scope, open[i].id, "retry_scheduled", "ready")
		}
		w.fail(ctx, "write", err)
		pause(ctx, rng, 4*time.Millisecond)
	}
}

// operate sends again what is parked and turns clocks.
func (w *world) operate(ctx context.Context, rng *rand.Rand) {
	const (
		rescued = `select count(*) from aksara_operation_outbox o where exported_at is null
			and next_attempt_at between clock_timestamp() + interval '1 hour' and clock_timestamp() + interval '2 days'
			and not exists (select 1 from aksara_operation_outbox h where h.operation_id = o.operation_id and h.exported_at is null
			                and h.next_attempt_at = 'infinity')`
		unpark = `update aksara_operation_outbox set next_attempt_at = clock_timestamp()
			where exported_at is null and operation_id in (select operation_id from aksara_operation_outbox
			  where exported_at is null and next_attempt_at > clock_timestamp() + interval '1 hour')`
		turn = `update aksara_operation_outbox set next_attempt_at = next_attempt_at + (random() - 0.9) * interval '1 second'
			where id in (select id from aksara_operation_outbox where exported_at is null and next_attempt_at < 'infinity'
			             order by random() limit 5 for update skip locked)`
	)
	for ctx.Err() == nil {
		var stranded int64
		err := w.admin.QueryRow(ctx, rescued).Scan(&stranded)
		w.rescued.Add(stranded)
		if err == nil {
			_, err = w.admin.Exec(ctx, unpark)
		}
		if err == nil && !w.calm.Load() {
			_, err = w.admin.Exec(ctx, turn)
		}
		if code(err) != "40P01" { // a deadlock with a settlement, which may be the one to go on
			w.fail(ctx, "operator", err)
		}
		pause(ctx, rng, 100*time.Millisecond)
	}
}

// export is a Python exporter: it may fail, and it may die with a row in its hands.
func (w *world) export(ctx context.Context, rng *rand.Rand, name string) {
	py := w.python(name, 200*time.Millisecond)
	for ctx.Err() == nil {
		scope := w.theirs
		if rng.IntN(3) == 0 {
			scope = w.mixed
		}
		id, operation, ok, err := py.claim(ctx, scope)
		if err == nil && ok && (w.calm.Load() || rng.IntN(10) > 0) {
			if w.calm.Load() || rng.IntN(10) > 0 {
				_ = w.any.add(&relay.Row{ID: id, OperationID: operation}) // its order is Python's business
				_, err = py.exported(ctx, scope, id)
			} else {
				_, err = py.failed(ctx, scope, id)
			}
		}
		w.fail(ctx, name, err)
		if !ok {
			pause(ctx, rng, 20*time.Millisecond)
		}
	}
}
