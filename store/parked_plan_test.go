package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"outboxrelay/store"
)

// Whatever the statistics say, each row is found by a probe; only the lists of parked rows
// walk, and that along the pending index. Statistics taken while everything is exported
// are the normal state, and the one that leads astray.
func TestParkedPlans(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		f.fill(t, scope, 2000, 3)
		f.exec(t, `update aksara_operation_outbox set exported_at = clock_timestamp()`)
		f.checkParkedPlans(t, "without statistics")
		f.exec(t, `analyze`)
		f.checkParkedPlans(t, "everything was exported")
		f.exec(t, `update aksara_operation_outbox set exported_at = null`)
		f.exec(t, `analyze`)
		f.checkParkedPlans(t, "nothing was exported")
	})
}

// checkParkedPlans has 500 operations of three rows parked beside others of which
// nothing is exported.
func (f *fixture) checkParkedPlans(t *testing.T, statistics string) {
	t.Helper()
	scope := tenant(t, "acme")
	f.fill(t, scope, 2000, 3)
	f.exec(t, `update aksara_operation_outbox set next_attempt_at = 'infinity', last_error = 'broken'
		where id in (select min(id) from aksara_operation_outbox where exported_at is null group by operation_id order by 1 limit 500)`)
	heads := query[int64](t, f, `select id from aksara_operation_outbox where exported_at is null and next_attempt_at = 'infinity' order by id limit 100`)
	operations := query[uuid.UUID](t, f, `select operation_id from aksara_operation_outbox where id = any($1) order by id`, heads)
	versions := slices.Repeat([]string{"1"}, len(heads))
	for name, args := range map[string][]any{
		"ids":          {namespace, 0, 100},
		"reasons":      {namespace, 10},
		"payload":      {namespace, heads[0]},
		"find":         {namespace, heads, operations, versions, store.BehindCap},
		"find by name": {namespace, make([]*int64, len(heads)), operations, versions, store.BehindCap},
		"retry":        {namespace, heads},
		"discard":      {namespace, heads, "discarded: x"},
		"behind":       {heads, operations},
	} {
		verb, _, _ := strings.Cut(name, " ")
		plan := f.explainText(t, scope, f.ParkedTexts(f.indexed)[verb], append([]any{scope.Stored()}, args...))
		for _, step := range plan.all() {
			if step.Relation == "" || step.Type == "ModifyTable" {
				continue
			}
			walk := step.Index == "idx_aksara_operation_outbox_pending"
			if !strings.HasPrefix(step.Type, "Index") || step.Relation == "aksara_operation_outbox" && walk != (name == "ids" || name == "reasons") {
				t.Errorf("%s, %s: a %s of %s %s", statistics, name, step.Type, step.Relation, step.Index)
			}
		}
		if plan.buffers() > 6000 {
			t.Errorf("%s, %s: %d buffers: %s", statistics, name, plan.buffers(), plan)
		}
	}
	f.exec(t, `update aksara_operation_outbox set exported_at = clock_timestamp() where exported_at is null`)
}
