package store_test

import (
	"strings"
	"testing"

	"outboxrelay/internal/sample"
	"outboxrelay/store"
)

func TestReasons(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		f.fill(t, tenant(t, "other"), 5, 1)
		f.fillAs(t, sample.Application{Namespace: "Orders"}, scope, 5, 1)
		f.exec(t, `update aksara_operation_outbox set next_attempt_at = 'infinity', last_error = 'not ours'`)
		if got, err := f.Reasons(t.Context(), namespace, scope, 10); err != nil || len(got) != 0 {
			t.Errorf("an empty scope: %v, %v", got, err)
		}
		var ids []int64
		for _, operation := range f.fill(t, scope, 7, 2) {
			ids = append(ids, operation[0])
		}
		f.exec(t, `update aksara_operation_outbox set next_attempt_at = 'infinity', export_attempts = 3,
			last_error = repeat('ö', 2000), created_at = '2026-01-02 03:04:05+00' where id = any($1)`, ids[1:6])
		f.exec(t, `update aksara_operation_outbox set claimed_by = 'x', claim_expires_at = 'infinity' where id = $1`, ids[1])
		f.exec(t, `update aksara_operation_outbox set last_error = null, created_at = 'infinity' where id = $1`, ids[3])
		got, err := f.Reasons(t.Context(), namespace, scope, 3)
		if err != nil || len(got) != 3 {
			t.Fatalf("%d rows, %v, want 3", len(got), err)
		}
		for i, e := range got {
			reason, year := strings.Repeat("ö", 2000), 2026
			if i == 1 {
				reason, year = "", 1_000_000
			}
			if e.ID != ids[i+2] || e.Error != reason || e.Attempts != 3 || e.CreatedAt.UTC().Year() != year || e.State != store.Parked || e.OperationID.String() == "" {
				t.Errorf("row %d: %+v", ids[i+2], e)
			}
		}
	})
}
