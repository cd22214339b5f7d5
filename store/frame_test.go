package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"outboxrelay/internal/pgtest"
	"outboxrelay/relay"
	"outboxrelay/store"
)

// code is the SQLSTATE of an error, "" if it has none.
func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// settleInBackground marks all rows of a claim and gives the answer later.
func (f *fixture) settleInBackground(ctx context.Context, claim relay.Claim) <-chan error {
	done := make(chan error, 1)
	go func() {
		results, err := f.Settle(ctx, claim, onAll(claim, relay.Verdict{Exported: true}))
		for _, result := range results {
			if err == nil && result.Status != relay.Written {
				err = fmt.Errorf("status %d, want written", result.Status)
			}
		}
		done <- err
	}()
	return done
}

// Another session holds the second row and wants the first, which the settlement has
// by then. The settlement is the one that notices, gives in, and tries again.
func TestSettleSurvivesDeadlock(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.exec(t, "alter role "+pgtest.User(t, f.url)+" set deadlock_timeout = '200ms'")
		scope := tenant(t, "acme")
		rows := f.fill(t, scope, 2, 1)
		claim := f.claim(t, scope)

		other := f.session(t)
		touch := func(id int64) error {
			_, err := other.Exec(t.Context(), "update aksara_operation_outbox set topic = 'touched' where id = $1", id)
			return err
		}
		if _, err := other.Exec(t.Context(), "set local deadlock_timeout = '1min'"); err != nil {
			t.Fatal(err)
		}
		if err := touch(rows[1][0]); err != nil {
			t.Fatal(err)
		}
		settled := f.settleInBackground(t.Context(), claim)
		f.awaitBlocked(t)
		if err := touch(rows[0][0]); err != nil { // waits until the settlement has given in
			t.Fatal(err)
		}
		if err := other.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-settled; err != nil {
			t.Errorf("settle: %v", err)
		}
	})
}

// What the server says to commit counts, not only what it says to the statements.
func TestRefusedCommitIsAnError(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		f.fill(t, scope, 3, 1)
		one := request(scope)
		one.Rows = 1
		claim := f.claimWith(t, one)
		f.exec(t, `create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$`)
		f.exec(t, `create constraint trigger refuse after update on aksara_operation_outbox
			deferrable initially deferred for each row execute function refuse()`)

		before := f.snapshot(t)
		if claim, err := f.Claim(t.Context(), one); code(err) != "P0001" {
			t.Errorf("claim: %d rows, %v, want the trigger's error", len(claim.Rows), err)
		}
		if _, err := f.Settle(t.Context(), claim, onAll(claim, relay.Verdict{Exported: true})); code(err) != "P0001" {
			t.Errorf("settle: %v, want the trigger's error", err)
		}
		if changed := before.changed(f.snapshot(t)); len(changed) != 0 {
			t.Errorf("changed %v, want nothing", changed)
		}
		f.exec(t, `drop trigger refuse on aksara_operation_outbox`)
		if results := f.settle(t, claim, relay.Verdict{Exported: true}); results[0].Status != relay.Written {
			t.Errorf("settle after it: status %d, want written", results[0].Status)
		}
	})
}

// openWith is open with other time-outs.
func (f *fixture) openWith(t *testing.T, cfg store.Config, call, server time.Duration) *store.Store {
	t.Helper()
	cfg.URL, cfg.Schema = f.url, "public"
	s, err := store.OpenWith(cfg, call, server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// A table that somebody locks for long: every call ends in time, by the server's own
// limit so that the connection is kept, and everything goes on afterwards.
func TestLockedTableCostsTimeOnly(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		f.fill(t, scope, 10, 1)
		one := request(scope)
		one.Rows = 1
		held := f.claimWith(t, one)
		f.Store = f.openWith(t, store.Config{Connections: 2}, patience, time.Second)
		f.settle(t, f.claimWith(t, one), relay.Verdict{Exported: true}) // now the connection knows the statements
		backends := f.backends(t)

		lock := f.session(t)
		if _, err := lock.Exec(t.Context(), "lock table aksara_operation_outbox in access exclusive mode"); err != nil {
			t.Fatal(err)
		}
		for range 2 { // after the first error they must be made known again
			if _, err := f.Claim(t.Context(), one); code(err) != "57014" {
				t.Errorf("claim: %v, want the server's time-out", err)
			}
			if _, err := f.Settle(t.Context(), held, onAll(held, relay.Verdict{Exported: true})); code(err) != "57014" {
				t.Errorf("settle: %v, want the server's time-out", err)
			}
		}
		if err := lock.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if results := f.settle(t, held, relay.Verdict{Exported: true}); results[0].Status != relay.Written {
			t.Errorf("settle after it: status %d, want written", results[0].Status)
		}
		if got := f.backends(t); !slices.Equal(got, backends) {
			t.Errorf("backends %d, want %d kept", got, backends)
		}
	})
}

// backends are the server's processes for stores.
func (f *fixture) backends(t testing.TB) []int {
	t.Helper()
	return query[int](t, f, `select pid from pg_stat_activity where datname = current_database() and application_name = 'relay' order by pid`)
}

// A server that does not even answer in its own time: the call ends all the same, and
// no more connections are open than may be.
func TestSilentServerCostsConnectionsWithinBounds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		const connections = 2
		f.Store = f.openWith(t, store.Config{Connections: connections}, 200*time.Millisecond, patience)
		scope := tenant(t, "acme")
		f.fill(t, scope, 1, 1)
		before := len(f.backends(t))
		lock := f.session(t)
		if _, err := lock.Exec(t.Context(), "lock table aksara_operation_outbox in access exclusive mode"); err != nil {
			t.Fatal(err)
		}
		for range 2 * connections {
			if _, err := f.Claim(t.Context(), request(scope)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("claim: %v, want the end of its time", err)
			}
			if n := f.Pool().Stat().TotalConns(); n > connections {
				t.Errorf("%d connections, want %d at most", n, connections)
			}
		}
		eventually(t, "the server has ended what nobody waits for", func() error {
			if n := len(f.backends(t)) - before; n > connections {
				return fmt.Errorf("%d backends", n)
			}
			return nil
		})
		if err := lock.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a claim comes through", func() error {
			claim, err := f.Claim(t.Context(), request(scope))
			if err == nil && len(claim.Rows) != 1 {
				err = fmt.Errorf("claimed %d rows", len(claim.Rows))
			}
			return err
		})
	})
}

func TestCallsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		rows := f.fill(t, scope, 1, 1)
		claim := f.claim(t, scope)
		lock := f.session(t)
		if _, err := lock.Exec(t.Context(), "select 1 from aksara_operation_outbox where id = $1 for update", rows[0][0]); err != nil {
			t.Fatal(err)
		}
		why := errors.New("the relay is stopping")
		ctx, cancel := context.WithCancelCause(t.Context())
		settled := f.settleInBackground(ctx, claim)
		f.awaitBlocked(t)
		cancel(why)
		if err := <-settled; !errors.Is(err, why) {
			t.Errorf("settle: %v, want %v", err, why)
		}
		if _, err := f.Claim(ctx, request(scope)); !errors.Is(err, why) {
			t.Errorf("claim: %v, want %v", err, why)
		}
		if err := lock.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Whether the settlement came through is not known: the row was marked then, or is now.
		f.settle(t, claim, relay.Verdict{Exported: true})
		if n := value[int](t, f, "select count(*) from aksara_operation_outbox where exported_at is not null and claimed_by is null"); n != 1 {
			t.Errorf("%d rows exported, want 1", n)
		}
	})
}

// A connection that died costs the call that finds it, and that one only.
func TestTerminatedBackend(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		s := f.open(t, store.Config{Connections: 1})
		scope := tenant(t, "acme")
		f.fill(t, scope, 3, 1)
		one := request(scope)
		one.Rows = 1
		claim, err := s.Claim(t.Context(), one)
		if err != nil {
			t.Fatal(err)
		}
		if n := f.exec(t, `select pg_terminate_backend(pid) from pg_stat_activity
			where datname = current_database() and application_name = 'relay'`); n == 0 {
			t.Fatal("there was no backend to terminate")
		}
		eventually(t, "the backends are gone", func() error {
			if left := f.backends(t); len(left) > 0 {
				return fmt.Errorf("%d are there", left)
			}
			return nil
		})
		verdicts := onAll(claim, relay.Verdict{Exported: true})
		if _, err := s.Settle(t.Context(), claim, verdicts); err == nil {
			t.Log("the settlement found out in time")
		}
		results, err := s.Settle(t.Context(), claim, verdicts)
		if err != nil {
			t.Errorf("second settlement: %v (%v)", err, results)
		}
		if _, err := s.Claim(t.Context(), one); err != nil {
			t.Errorf("claim: %v", err)
		}
		if n := value[int](t, f, "select count(*) from aksara_operation_outbox where exported_at is not null"); n != 1 {
			t.Errorf("%d rows exported, want 1", n)
		}
	})
}
