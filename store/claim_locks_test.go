package store_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

func TestClaimPassesLockedRowsOver(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		rows := f.fill(t, scope, 3, 1)
		for _, lock := range []string{"update", "no key update", "share", "key share"} {
			tx := f.session(t)
			var id int64
			err := tx.QueryRow(t.Context(), "select id from aksara_operation_outbox where id = $1 for "+lock, rows[1][0]).Scan(&id)
			if err != nil {
				t.Fatal(err)
			}
			claim := f.claim(t, scope)
			want := []int64{rows[0][0], rows[2][0]}
			if got := ids(claim); !slices.Equal(got, want) {
				t.Errorf("for %s: claimed %d, want %d", lock, got, want)
			}
			f.settle(t, claim, relay.Verdict{Wait: relay.KeepDue, Refund: true})
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := f.claim(t, scope); len(got.Rows) != 3 {
			t.Errorf("claimed %d rows after the lock was gone, want 3", len(got.Rows))
		}
	})
}

// While a claim's transaction is open nobody else is held up: its only locks are on
// outbox rows.
func TestClaimLocksOutboxRowsOnly(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		f.fill(t, scope, 10, 3)
		req := request(scope)
		tx := f.openClaim(t, req)
		other := f.session(t)
		for _, table := range []string{"aksara_operations", "aksara_operation_transitions"} {
			tag, err := other.Exec(t.Context(), "select 1 from "+table+" for update nowait")
			if err != nil || tag.RowsAffected() == 0 {
				t.Errorf("lock %s: %v, %v", table, tag, err)
			}
		}
		tag, err := other.Exec(t.Context(), "select 1 from aksara_operation_outbox for update skip locked")
		if err != nil || tag.RowsAffected() != 0 {
			t.Errorf("lock the outbox: %v, %v, want no row", tag, err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// openClaim makes a claim by hand in a transaction of the store's role that stays open.
func (f *fixture) openClaim(t *testing.T, req relay.Request) pgx.Tx {
	t.Helper()
	tx := f.frame(t, req.Scope)
	if _, err := tx.Exec(t.Context(), f.ClaimText(req, f.indexed), claimArguments(req)...); err != nil {
		t.Fatal(err)
	}
	return tx
}

// frame opens a transaction of the store's role that is set up as the store does it.
func (f *fixture) frame(t testing.TB, scope envelope.Scope) pgx.Tx {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), f.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), f.Frame(), scope.Stored(), "9000", "9000"); err != nil {
		t.Fatal(err)
	}
	return tx
}

func claimArguments(req relay.Request) []any {
	return []any{req.Scope.Stored(), req.Namespace, req.Token, req.Lease.Seconds(), 86400.0, "-infinity", 0, req.Bytes}
}

// More claimants than rows, at once: each row goes to exactly one of them.
func TestConcurrentClaimsShareNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		const claimants = 8
		scope := tenant(t, "acme")
		want := slices.Sorted(slices.Values(slices.Concat(f.fill(t, scope, 100, 3)...)))
		answers := make(chan []int64, claimants)
		for range claimants {
			go func() {
				var mine []int64
				defer func() { answers <- mine }()
				for {
					req := request(scope)
					req.Token = "worker/" + uuid.NewString()
					req.Rows = 7
					claim, err := f.Claim(t.Context(), req)
					if err != nil {
						t.Error(err)
						return
					}
					if len(claim.Rows) == 0 && !claim.More {
						return
					}
					mine = append(mine, ids(claim)...)
					if _, err := f.Settle(t.Context(), claim, onAll(claim, relay.Verdict{Exported: true})); err != nil {
						t.Error(err)
						return
					}
				}
			}()
		}
		var got []int64
		for range claimants {
			got = append(got, <-answers...)
		}
		slices.Sort(got)
		// A claimant may have looked while the last rows' operations were in flight.
		got = append(got, ids(f.claim(t, scope))...)
		if !slices.Equal(got, want) {
			t.Errorf("claimed %d rows in all, want each of %d once", len(got), len(want))
		}
	})
}
