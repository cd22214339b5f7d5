package store_test

import (
	"fmt"
	"strings"
	"testing"

	"outboxrelay/envelope"
	"outboxrelay/relay"
	"outboxrelay/store"
)

// A relay begins on small tables, and a connection keeps its plans. When a backlog comes, and the server has not counted it
// yet, no statement may go on as if it were best to read the whole table.
func TestPlansOfSmallTablesServeLargeOnes(t *testing.T) {
	t.Parallel()
	for _, operations := range []int{1, 20, 300} {
		t.Run(fmt.Sprint(operations), func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, f *fixture) {
				const tables = "aksara_operation_outbox, aksara_operations, aksara_operation_transitions"
				for table := range strings.SplitSeq(tables, ", ") {
					f.exec(t, "alter table "+table+" set (autovacuum_enabled = off)")
				}
				scope := tenant(t, "acme")
				f.fill(t, scope, operations, 3)
				f.exec(t, "vacuum analyze "+tables)
				s := f.open(t, store.Config{Connections: 1}) // which plans everything once
				req := request(scope)
				req.Rows = 3
				claim, err := s.Claim(t.Context(), req)
				if err != nil || len(claim.Rows) != req.Rows {
					t.Fatalf("%d rows claimed, want %d: %v", len(claim.Rows), req.Rows, err)
				}
				for _, verdict := range []relay.Verdict{{Error: "fails"}, {Exported: true}} {
					if _, err := s.Settle(t.Context(), claim, onAll(claim, verdict)); err != nil {
						t.Fatal(err)
					}
				}

				f.fill(t, tenant(t, "other"), 10_000, 3)
				f.fill(t, scope, 1000, 3)
				const nobody = "00000000-0000-0000-0000-000000000000"
				mark, late, release := s.SettleTexts()
				for _, is := range []struct {
					name, text string
					args       []any
					most       int
				}{
					{"claim", s.ClaimText(req, f.indexed), claimArguments(req), 4000}, // which looks at 200 rows
					{"mark", mark, []any{"{1,2,3}", req.Token}, 50},
					{"late mark", late, []any{"{1,2}", "{" + nobody + "," + nobody + "}", "{2026-01-01,2026-01-01}"}, 50},
					{"release", release, []any{"{1,2}", req.Token, "{0,0}", "{a,b}", "{0,0}"}, 50},
				} {
					if plan := f.planned(t, s, scope, is.text, is.args); plan.buffers() > is.most {
						t.Errorf("a %s looks at %d buffers, want at most %d: %s", is.name, plan.buffers(), is.most, plan)
					}
				}
			})
		})
	}
}

// planned runs a statement by the plan that the only connection of a store has for it.
func (f *fixture) planned(t *testing.T, s *store.Store, scope envelope.Scope, text string, args []any) node {
	t.Helper()
	tx, err := s.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), f.Frame(), scope.Stored(), "9000", "9000"); err != nil {
		t.Fatal(err)
	}
	var name string
	if err := tx.QueryRow(t.Context(), "select name from pg_prepared_statements where statement = $1", text).Scan(&name); err != nil {
		t.Fatal(err)
	}
	values := make([]string, len(args))
	for i, arg := range args {
		values[i] = fmt.Sprintf("'%v'", arg)
	}
	return explainIn(t, tx, fmt.Sprintf("execute %s (%s)", name, strings.Join(values, ", ")), nil)
}
