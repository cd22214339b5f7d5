package store_test

import (
	"testing"

	"outboxrelay/envelope"
)

// What a claim reads does not depend on how many rows wait, were exported, or are
// parked, only on how many it takes.
func TestClaimCostDoesNotGrow(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		const tolerance = 0.3
		large, small, parked := tenant(t, "large"), tenant(t, "small"), tenant(t, "parked")
		// The large one comes first, so that all measurements find indexes of one height.
		f.fill(t, large, 33_334, 3)
		f.fill(t, small, 1667, 3)
		want := f.cost(t, small)
		compare := func(what string, scope envelope.Scope) {
			t.Helper()
			got := f.cost(t, scope)
			t.Logf("%s: %.0f buffers, %.2f of those with 5k pending", what, got, got/want)
			if got < want*(1-tolerance) || got > want*(1+tolerance) {
				t.Errorf("%s: a claim takes %.0f buffers, want the %.0f of 5k pending or so", what, got, want)
			}
		}
		compare("100k pending", large)

		// Whole operations: without the index a claim steps over an operation's own history.
		f.exec(t, `update aksara_operation_outbox set exported_at = clock_timestamp() where operation_id in (
			select operation_id from aksara_operation_transitions
			where tenant_scope = 'large' and state_version = 1 order by id limit 16667)`)
		compare("50k exported before 50k pending", large)

		f.fill(t, parked, 5000, 2)
		f.exec(t, `update aksara_operation_outbox o set next_attempt_at = 'infinity' from aksara_operation_transitions t
			where t.id = o.transition_id and t.state_version = 1 and o.tenant_scope = 'parked'`)
		if got := f.drain(t, parked, 1000); len(got) != 0 {
			t.Fatalf("claimed %d rows behind parked ones", len(got))
		}
		f.fill(t, parked, 1667, 3)
		compare("5k parked before 5k pending", parked)
	})
}

// cost is how many buffers a claim of 500 rows takes; it makes no claim.
func (f *fixture) cost(t testing.TB, scope envelope.Scope) float64 {
	t.Helper()
	f.exec(t, "vacuum analyze aksara_operation_outbox, aksara_operations, aksara_operation_transitions")
	req := request(scope)
	req.Rows = 500
	plan := f.explain(t, req)
	plan.check(t, f, req.Rows)
	return float64(plan.buffers())
}
