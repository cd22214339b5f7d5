package store_test

import (
	"testing"
)

// What a claim reads does not depend on how many rows wait, were exported, or are
// parked, only on how many it takes.
func TestClaimCostDoesNotGrow(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		const (
			batch     = 500
			tolerance = 0.3
		)
		measure := func(name string) int {
			f.exec(t, "vacuum analyze aksara_operation_outbox, aksara_operations, aksara_operation_transitions")
			req := request(tenant(t, name))
			req.Rows = batch
			plan := f.explain(t, req)
			plan.check(t, f, batch)
			return plan.buffers()
		}
		f.fill(t, tenant(t, "others"), 5000, 3) // indexes of a tiny table have a level less
		f.fill(t, tenant(t, "5k pending"), 1667, 3)
		want := measure("5k pending")
		for _, c := range []struct {
			name    string
			prepare func(name string)
		}{
			{"100k pending", func(name string) { f.fill(t, tenant(t, name), 33_334, 3) }},
			{"50k exported before 5k pending", func(name string) {
				f.fill(t, tenant(t, name), 16_667, 3)
				f.exec(t, "update aksara_operation_outbox set exported_at = clock_timestamp() where tenant_scope = $1", name)
				f.fill(t, tenant(t, name), 1667, 3)
			}},
			{"5k parked before 5k pending", func(name string) {
				f.fill(t, tenant(t, name), 5000, 3)
				f.exec(t, `update aksara_operation_outbox o set next_attempt_at = 'infinity' from aksara_operation_transitions t
					where t.id = o.transition_id and t.state_version = 1 and o.tenant_scope = $1`, name)
				if got := f.drain(t, tenant(t, name), 1000); len(got) != 0 {
					t.Fatalf("claimed %d rows behind parked ones", len(got))
				}
				f.fill(t, tenant(t, name), 1667, 3)
			}},
		} {
			c.prepare(c.name)
			got := measure(c.name)
			t.Logf("%s: %d buffers, %.2f of those with 5k pending", c.name, got, float64(got)/float64(want))
			if off := float64(got)/float64(want) - 1; off > tolerance || off < -tolerance {
				t.Errorf("%s: a claim of %d rows takes %d buffers, want the %d of 5k pending or so", c.name, batch, got, want)
			}
		}
	})
}
