package store_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"outboxrelay/envelope"
	"outboxrelay/relay"
	"outboxrelay/store"
)

const (
	takes   = 200          // rows of a claim, which looks at as many
	tooMuch = 3*takes + 50 // for one claim
)

// muchOf fills a scope, and takes the first rows of it.
func (f *fixture) muchOf(t *testing.T, req relay.Request) (took map[int64]bool) {
	t.Helper()
	f.fill(t, req.Scope, tooMuch, 1)
	f.backdate(t, req.Scope)
	took = map[int64]bool{}
	f.takeInto(t, took, req)
	return took
}

func (f *fixture) takeInto(t *testing.T, took map[int64]bool, req relay.Request) relay.Claim {
	t.Helper()
	c := f.claimWith(t, req)
	for _, row := range c.Rows {
		took[row.ID] = true
	}
	return c
}

func requestOf(scope envelope.Scope) relay.Request {
	req := request(scope)
	req.Rows = takes
	return req
}

// unfinished is the claim of another relay whose transaction is open.
func (f *fixture) unfinished(t *testing.T, req relay.Request) pgx.Tx {
	t.Helper()
	req.Token = "another relay"
	tx := f.frame(t, req.Scope)
	gate, number := f.GateText(req)
	if _, err := tx.Exec(t.Context(), gate, number); err != nil {
		t.Fatal(err)
	}
	tag, err := tx.Exec(t.Context(), f.ClaimText(req, f.indexed), claimArguments(req)...)
	if err != nil || tag.RowsAffected() != takes+1 {
		t.Fatalf("%v, %v, want %d rows claimed and one that tells of them", tag, err, takes)
	}
	return tx
}

// Several relays drain a scope: while one of them claims, another does not look at the same rows, which only one of them can
// have. Nobody else is kept away.
func TestClaimsDoNotLookAtTheSameRows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		req, elsewhere := requestOf(tenant(t, "acme")), requestOf(tenant(t, "globex"))
		f.muchOf(t, req)
		f.muchOf(t, elsewhere)
		f.unfinished(t, req)
		if c := f.claimWith(t, req); c.Seen > 0 || c.More || !c.Busy {
			t.Errorf("a claim looked at %d rows where another one looks, says more %t and busy %t", c.Seen, c.More, c.Busy)
		}
		if c := f.claimWith(t, elsewhere); len(c.Rows) != takes || c.Busy {
			t.Errorf("of another tenant %d rows were claimed, want %d", len(c.Rows), takes)
		}
		foreign := req
		foreign.Namespace = "billing"
		if c := f.claimWith(t, foreign); c.Busy {
			t.Error("a claim of another namespace was kept away")
		}
		one := req
		one.Rows = 1
		if c := f.claimWith(t, one); c.Seen == 0 {
			t.Error("a claim of one row was told that there is none")
		}
	})
}

// A relay stands still in the middle of its claim: after a second others go on as fast as if it weren't there, whatever of what
// they look at they take. When it is gone they find what it held.
func TestClaimThatMakesNoProgress(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		req := requestOf(tenant(t, "acme"))
		took := f.muchOf(t, req)
		stuck := f.unfinished(t, req)
		eventually(t, "a claim goes past the one that stands still", func() error {
			if c := f.takeInto(t, took, req); c.Busy {
				return fmt.Errorf("it is waited for")
			}
			return nil
		})
		few := req
		few.Rows = 30 // fewer than it looks at
		for i := 0; len(took) < tooMuch-takes; i++ {
			if c := f.takeInto(t, took, few); c.Busy || i > 100 {
				t.Fatalf("claim %d: busy is %t, and %d rows are claimed", i, c.Busy, len(took))
			}
		}
		if err := stuck.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "all to be claimed", func() error {
			if f.takeInto(t, took, req); len(took) != tooMuch {
				return fmt.Errorf("%d are", len(took))
			}
			return nil
		})
	})
}

// Connections are left as they were: a lock or a setting that outlives its transaction would stay in a pool.
func TestGateEndsWithItsTransaction(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		req := requestOf(tenant(t, "acme"))
		f.muchOf(t, req)
		f.claimWith(t, req)
		const locks = `select count(*) from pg_locks l join pg_database d on d.oid = l.database
			where l.locktype = 'advisory' and d.datname = current_database()`
		if n := value[int](t, f, locks); n != 0 {
			t.Errorf("%d advisory locks are left", n)
		}
		var left string
		if err := f.Pool().QueryRow(t.Context(), `select coalesce(current_setting('relay.gate', true), '')`).Scan(&left); err != nil || left != "" {
			t.Errorf("the setting is left at %q (%v)", left, err)
		}
	})
}

// Tables of different schemas have nothing to do with each other.
func TestGatesOfSchemas(t *testing.T) {
	t.Parallel()
	gates := map[int64]bool{}
	for _, schema := range []string{"public", "elsewhere"} {
		s, err := store.Open(store.Config{URL: "postgres://localhost", Schema: schema})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		_, gate := s.GateText(request(tenant(t, "acme")))
		gates[gate] = true
	}
	if len(gates) != 2 {
		t.Error("two schemas have one gate")
	}
}
