package store_test

import (
	"slices"
	"testing"

	"outboxrelay/envelope"
	"outboxrelay/relay"
	"outboxrelay/store"
)

// One connection serves all scopes in turn. Each transaction sees its own scope's rows
// and no others, whatever came before it on the connection.
func TestOneConnectionManyScopes(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, f *fixture) {
		s := f.open(t, store.Config{Connections: 1})
		scopes := []envelope.Scope{tenant(t, "a"), tenant(t, "b"), tenant(t, "c"), envelope.NonTenant()}
		want := map[envelope.Scope][]int64{}
		for i, scope := range scopes {
			want[scope] = slices.Sorted(slices.Values(slices.Concat(f.fill(t, scope, 6+i, 1)...)))
		}
		got := map[envelope.Scope][]int64{}
		for round := range 5 {
			for _, scope := range scopes {
				req := request(scope)
				req.Rows = 2
				claim, err := s.Claim(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				status, err := s.Status(t.Context(), namespace, scope)
				if err != nil || status.Due+status.InFlight+len(got[scope]) != len(want[scope]) {
					t.Errorf("round %d, %s: status %+v, %v", round, scope, status, err)
				}
				got[scope] = append(got[scope], ids(claim)...)
				if _, err := s.Settle(t.Context(), claim, onAll(claim, relay.Verdict{Exported: true})); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, scope := range scopes {
			if !slices.Equal(got[scope], want[scope]) {
				t.Errorf("%s: claimed %d, want %d", scope, got[scope], want[scope])
			}
		}
		f.checkTraceless(t, s)
	})
}

// checkTraceless makes sure that the connection, outside the store's transactions, has
// no scope and none of the settings that those make.
func (f *fixture) checkTraceless(t *testing.T, s *store.Store) {
	t.Helper()
	var rows int
	var scope, jit, seqscan string
	err := s.Pool().QueryRow(t.Context(), `select (select count(*) from aksara_operation_outbox),
		current_setting('aksara.current_tenant_id', true), current_setting('jit'), current_setting('enable_seqscan')`).
		Scan(&rows, &scope, &jit, &seqscan)
	if err != nil || rows != 0 || scope != "" || seqscan != "on" {
		t.Errorf("outside a transaction: %d rows, scope %q, jit %s, sequential scans %s, %v", rows, scope, jit, seqscan, err)
	}
}

func TestTransactionSeesItsScopeOnly(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scopes := map[envelope.Scope]int{tenant(t, "acme"): 3, tenant(t, "Acme"): 2, envelope.NonTenant(): 1, tenant(t, "nobody"): 0}
		for scope, n := range scopes {
			if n > 0 {
				f.fill(t, scope, n, 1)
			}
		}
		for scope, want := range scopes {
			tx := f.frame(t, scope)
			var n int
			if err := tx.QueryRow(t.Context(), "select count(*) from aksara_operation_outbox").Scan(&n); err != nil || n != want {
				t.Errorf("%s sees %d rows, %v, want %d", scope, n, err, want)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// A role that row security does not bind is told apart by nothing but the statements'
// own words, which suffice.
func TestStatementsNameTheirScope(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		s := f.open(t, store.Config{URL: f.db.URL}) // the superuser's
		acme, other := tenant(t, "acme"), tenant(t, "other")
		rows := f.fill(t, acme, 1, 2)[0]
		f.fill(t, other, 2, 2)
		claim, err := s.Claim(t.Context(), request(acme))
		if err != nil || !slices.Equal(ids(claim), rows) {
			t.Errorf("claimed %d, %v, want %d", ids(claim), err, rows)
		}
		status, err := s.Status(t.Context(), namespace, acme)
		if err != nil || status != (store.Status{InFlight: 2}) {
			t.Errorf("status %+v, %v, want 2 in flight", status, err)
		}
	})
}
