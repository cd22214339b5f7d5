package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"outboxrelay/envelope"
)

// seedVariable names the environment variable that repeats a run's decisions, if not
// their timing.
const seedVariable = "RELAY_TEST_SEED"

// TestEverythingAtOnce lets unreliable relays, Python exporters, writers and an
// operator work on one database for some seconds, and then the reliable ones alone.
// Each operation's events must have been delivered first in the order of their
// versions, nothing may be lost, and in the end nothing is left.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		const trouble = 6 * time.Second
		f.exec(t, "alter database "+strconv.Quote(f.db.Name)+" set deadlock_timeout = '50ms'")
		w := &world{
			fixture: f, t: t, seed: seed(t),
			ours:  []envelope.Scope{tenant(t, "one"), tenant(t, "two"), envelope.NonTenant()},
			mixed: tenant(t, "mixed"), theirs: tenant(t, "theirs"),
			hold: holders{until: map[int64]time.Time{}},
		}
		for _, scope := range append([]envelope.Scope{w.mixed, w.theirs}, w.ours...) {
			f.fill(t, scope, 40, 5)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var actors sync.WaitGroup
		for i, act := range []func(context.Context, *rand.Rand){
			w.write, w.write, w.operate, w.claimant, w.claimant, w.claimant, w.claimant, w.claimant, w.claimant,
			func(ctx context.Context, rng *rand.Rand) { w.export(ctx, rng, "py-1") },
			func(ctx context.Context, rng *rand.Rand) { w.export(ctx, rng, "py-2") },
		} {
			actors.Go(func() { act(ctx, w.random(uint64(i))) })
		}
		<-time.After(trouble)
		w.calm.Store(true)
		w.awaitDrained()
		cancel()
		actors.Wait()
		w.checkDelivered()
	})
}

func seed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	t.Logf("%s=%d makes the same decisions again", seedVariable, seed)
	return seed
}

func (w *world) awaitDrained() {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("seed %d: all rows are exported", w.seed), func() error {
		left := query[string](w.t, w.fixture, `select format('row %s of %s: due %s, claimed by %s until %s, error %s', id, tenant_scope,
			next_attempt_at, claimed_by, claim_expires_at, last_error) from aksara_operation_outbox where exported_at is null order by id`)
		if len(left) > 0 {
			return fmt.Errorf("%d rows are left, the first: %s", len(left), left[0])
		}
		return nil
	})
}

// checkDelivered makes sure that each row that is marked was delivered.
func (w *world) checkDelivered() {
	w.t.Helper()
	rows, duplicates := query[int64](w.t, w.fixture, "select id from aksara_operation_outbox"), 0
	for _, id := range rows {
		n := w.log.of(id) + w.any.of(id)
		if n == 0 {
			w.t.Errorf("seed %d: row %d is marked and was never delivered", w.seed, id)
		}
		duplicates += n - 1
	}
	if w.log.count() < 600 {
		w.t.Errorf("only %d rows in our scopes: too few to tell anything", w.log.count())
	}
	w.t.Logf("%d rows, %d duplicates; %d claims of %d rows, %d late marks, %d verdicts lost; %d times a row waited behind none",
		len(rows), duplicates, w.claims.Load(), w.rows.Load(), w.late.Load(), w.lost.Load(), w.rescued.Load())
}
