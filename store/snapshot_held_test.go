package store_test

import (
	"testing"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

// Somebody's transaction stays open for long, so nothing that died since can be removed. A claim's walk then comes past what is
// dead in the index, many rows for a buffer; when the transaction has ended it is as cheap as before.
func TestHeldSnapshotCostsLittle(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		const dead, perBuffer = 8000, 5
		f.exec(t, "alter table aksara_operation_outbox set (autovacuum_enabled = off)")
		scope := tenant(t, "acme")
		f.fill(t, scope, 100, 1)
		f.exec(t, "vacuum analyze aksara_operation_outbox")
		before := f.walk(t, scope)

		held := f.session(t)
		if _, err := held.Exec(t.Context(), "set transaction isolation level repeatable read"); err != nil {
			t.Fatal(err)
		}
		if _, err := held.Exec(t.Context(), "select count(*) from aksara_operation_outbox"); err != nil {
			t.Fatal(err)
		}
		f.fill(t, scope, dead, 1)
		for claim := f.claim(t, scope); len(claim.Rows) > 0; claim = f.claim(t, scope) {
			f.settle(t, claim, relay.Verdict{Exported: true})
		}
		f.fill(t, scope, 100, 1)
		during := f.walk(t, scope)
		if during > before+dead/perBuffer || during < 2*before {
			t.Errorf("with a held snapshot the walk takes %d buffers, want more than the %d of before, and one for %d dead rows at most", during, before, perBuffer)
		}
		if err := held.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.exec(t, "vacuum aksara_operation_outbox")
		if after := f.walk(t, scope); after > 2*before {
			t.Errorf("after it the walk takes %d buffers, want the %d of before or so", after, before)
		}
		t.Logf("%d buffers before, %d with the snapshot", before, during)
	})
}

// walk is how many buffers a claim takes to find the rows that are due.
func (f *fixture) walk(t *testing.T, scope envelope.Scope) int {
	t.Helper()
	plan := f.explain(t, request(scope))
	due := plan.part("CTE due")
	if len(due) == 0 || int(due[0].Rows) != 100 {
		t.Fatalf("the claim walks over no 100 rows: %s", plan)
	}
	// With a table thought to be small, it is tempting to read all of it for the rest.
	if rest, most := plan.buffers()-due[0].buffers(), 40*100; rest > most {
		t.Errorf("the rest of the claim takes %d buffers, want %d at most: %s", rest, most, plan)
	}
	for _, step := range plan.all() {
		if n := step.Rows * step.Loops; n > 20_000 {
			t.Errorf("a step of the claim gives %.0f rows: %s", n, plan)
		}
	}
	return due[0].buffers()
}
