package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

// Due times may lie anywhere: a restored database, a hand-written update.
func TestDueAtAnyTime(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scopes := []envelope.Scope{tenant(t, "acme"), tenant(t, "empty")}
		row := f.fill(t, scopes[0], 1, 1)[0][0]
		for due, want := range map[string]time.Duration{
			"-infinity": 0, "4713-01-01 BC": 0, "2026-01-01": 0, "infinity": relay.Never, "294276-12-31": 24 * 365 * 100 * time.Hour,
		} {
			f.exec(t, "update aksara_operation_outbox set next_attempt_at = $2 where id = $1", row, due)
			got, err := f.Due(t.Context(), scopes)
			if err != nil {
				t.Fatal(err)
			}
			if want == 0 && got[0] != 0 || want != 0 && got[0] < want || got[1] != relay.Never {
				t.Errorf("due %s: %v, want %s and never", due, got, want)
			}
		}
	})
}

// Whatever the statistics say, a look at many scopes is one probe of the pending index for each.
func TestDuePlan(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, f *fixture) {
		const tenants = 300
		var scopes []envelope.Scope
		var stored, starts []string
		for i := range tenants {
			scopes = append(scopes, tenant(t, fmt.Sprint("tenant-", i)))
			stored, starts = append(stored, scopes[i].Stored()), append(starts, "-infinity")
		}
		f.fill(t, scopes[7], 3000, 1)
		probes := func(plan node, statistics string) {
			t.Helper()
			for _, step := range plan.all() {
				if step.Relation != "" && (!strings.HasPrefix(step.Type, "Index") || step.Index != "idx_aksara_operation_outbox_pending") {
					t.Errorf("%s: a %s of %s %s", statistics, step.Type, step.Relation, step.Index)
				}
			}
			if n := plan.buffers(); n > 10*tenants {
				t.Errorf("%s: %d buffers: %s", statistics, n, plan)
			}
		}
		check := func(statistics string) {
			t.Helper()
			plan := f.explainText(t, scopes[0], f.DueText(), []any{stored, starts, make([]int64, tenants)})
			probes(plan, statistics)
			probes(f.explainText(t, scopes[0], f.WaitingText(), []any{stored}), statistics)
		}
		check("without statistics")
		f.exec(t, "analyze")
		check("nothing was exported")
		f.exec(t, "update aksara_operation_outbox set exported_at = clock_timestamp()")
		f.exec(t, "vacuum analyze aksara_operation_outbox")
		check("everything was exported")
		f.fill(t, scopes[200], 3000, 1)
		check("and then some were written")
		due, err := f.Due(t.Context(), scopes)
		if err != nil {
			t.Fatal(err)
		}
		waiting, err := f.Waiting(t.Context(), scopes)
		if err != nil {
			t.Fatal(err)
		}
		for i := range scopes {
			if want := i == 200; (due[i] == 0) != want || waiting[i] != want {
				t.Errorf("%s: due in %s, waiting %t", scopes[i], due[i], waiting[i])
			}
		}
	})
}
