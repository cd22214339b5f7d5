package store_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"outboxrelay/migrations"
	"outboxrelay/relay"
	"outboxrelay/store"
)

// build makes the supporting index while the store works.
func (f *fixture) build(t testing.TB) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), f.db.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := migrations.Run(t.Context(), conn, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
}

func TestIndexIsFoundAndMissed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, variants()[1])
	f.Store = f.openWith(t, store.Config{}, patience, patience)
	want := func(want bool) {
		t.Helper()
		if got, err := f.Indexed(t.Context()); err != nil || got != want {
			t.Errorf("indexed: %t, %v, want %t", got, err, want)
		}
	}
	want(false)
	f.build(t)
	want(true)
	f.exec(t, "drop index relay_outbox_operation")
	want(false)
	// Looks right by its name, but does not hold all rows that a claim asks for.
	f.exec(t, "create index relay_outbox_operation on aksara_operation_outbox (operation_id, id) where exported_at is null")
	want(false)
}

// A store that has seen the index trusts it for a while. When it is gone all the same,
// claims may be slow but not wrong, and a failed one is enough to look again.
func TestIndexIsLookedForAfterAFailure(t *testing.T) {
	t.Parallel()
	f := newFixture(t, variants()[0])
	scope := tenant(t, "acme")
	rows := f.fill(t, scope, 3, 2)
	f.settle(t, f.claim(t, scope), relay.Verdict{Wait: relay.KeepDue, Refund: true})
	f.exec(t, "drop index relay_outbox_operation")

	claim := f.claim(t, scope)
	if want := slices.Sorted(slices.Values(slices.Concat(rows...))); !slices.Equal(ids(claim), want) {
		t.Errorf("claimed %d without the index, want %d", ids(claim), want)
	}
	if indexed, err := f.Indexed(t.Context()); err != nil || !indexed {
		t.Errorf("the store does not trust what it saw: %t, %v", indexed, err)
	}
	req := request(scope)
	req.Token = ""
	for range 256 {
		req.Token += "x"
	}
	f.settle(t, claim, relay.Verdict{Wait: relay.KeepDue, Refund: true})
	if _, err := f.Claim(t.Context(), req); err == nil {
		t.Fatal("a token of 256 characters was taken")
	}
	if indexed, err := f.Indexed(t.Context()); err != nil || indexed {
		t.Errorf("the index was not looked for after a failed claim: %t, %v", indexed, err)
	}
}

// The index comes and goes under several claimants; nobody notices.
func TestIndexComesAndGoesDuringADrain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, variants()[1])
	f.Store = f.openWith(t, store.Config{}, patience, patience)
	scope := tenant(t, "acme")
	rows := f.fill(t, scope, 500, 3)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	var log deliveries
	var claimants sync.WaitGroup
	for range 3 {
		claimants.Go(func() {
			req := request(scope)
			req.Rows = 20
			for ctx.Err() == nil && log.count() < 3*len(rows) {
				claim, err := f.Claim(ctx, req)
				if err != nil {
					t.Error(err)
					return
				}
				for i := range claim.Rows {
					if err := log.add(&claim.Rows[i]); err != nil {
						t.Error(err)
					}
				}
				if _, err := f.Settle(ctx, claim, onAll(claim, relay.Verdict{Exported: true})); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	drained := make(chan struct{})
	go func() { claimants.Wait(); close(drained) }()
	for round := 0; ; round++ {
		f.build(t)
		f.exec(t, "drop index concurrently relay_outbox_operation")
		select {
		case <-drained:
			t.Logf("the index came and went %d times in %d rows", round+1, log.count())
			if log.count() != 3*len(rows) {
				t.Errorf("drained %d rows, want %d", log.count(), 3*len(rows))
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
}
