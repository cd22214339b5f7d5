package store_test

import (
	"testing"
	"time"

	"outboxrelay/relay"
	"outboxrelay/store"
)

// Between two calls, which is where events are sent, no transaction is open: nothing is locked, no snapshot keeps dead rows
// from being removed, and a server that ends idle transactions has none to end.
func TestNothingIsLeftOpenBetweenCalls(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		f.fill(t, scope, 4, 2)
		f.Store = f.open(t, store.Config{Connections: 1})
		idle := func(after string) {
			t.Helper()
			busy := query[string](t, f, `select format('%s, snapshot %s', state, backend_xmin) from pg_stat_activity
				where datname = current_database() and application_name = 'relay' and (state <> 'idle' or backend_xmin is not null or backend_xid is not null)`)
			locks := value[int](t, f, `select count(*) from pg_locks join pg_stat_activity a using (pid)
				where a.datname = current_database() and a.application_name = 'relay'`)
			if len(busy) > 0 || locks > 0 {
				t.Errorf("after %s: sessions %q, %d locks, want none", after, busy, locks)
			}
		}
		claim := f.claim(t, scope)
		idle("a claim")
		if _, err := f.Renew(t.Context(), claim, ids(claim), time.Minute); err != nil {
			t.Fatal(err)
		}
		idle("a renewal")
		f.settle(t, claim, relay.Verdict{Wait: relay.KeepDue, Refund: true})
		idle("a settlement")
		f.settle(t, f.claim(t, scope), relay.Verdict{Exported: true})
		f.claim(t, scope)
		idle("a claim of nothing")
		if _, err := f.Status(t.Context(), namespace, scope); err != nil {
			t.Fatal(err)
		}
		idle("the status")
	})
}
