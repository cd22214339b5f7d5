package store_test

import (
	"slices"
	"testing"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/internal/sample"
	"outboxrelay/store"
)

func TestStatusCountsEachRowOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		f.fill(t, tenant(t, "other"), 5, 1)
		f.fillAs(t, sample.Application{Namespace: "Orders"}, scope, 5, 1)
		if got, err := f.Status(t.Context(), namespace, scope); err != nil || got != (store.Status{}) {
			t.Errorf("status of an empty scope: %+v, %v", got, err)
		}
		n := 0
		for _, group := range []struct {
			rows int
			set  string
		}{
			{1, `next_attempt_at = clock_timestamp() - interval '1 hour'`},
			{1, `claimed_by = 'gone', claim_expires_at = clock_timestamp() - interval '1 minute'`},
			{2, `claimed_by = 'other', claim_expires_at = clock_timestamp() + interval '1 hour', next_attempt_at = '2026-01-01'`},
			{1, `claimed_by = 'other', claim_expires_at = clock_timestamp() + interval '1 hour', next_attempt_at = clock_timestamp() + interval '1 hour'`},
			{4, `next_attempt_at = clock_timestamp() + interval '1 hour'`},
			{5, `next_attempt_at = 'infinity', last_error = 'broken'`},
			{6, `exported_at = clock_timestamp()`},
		} {
			for _, operation := range f.fill(t, scope, group.rows, 1) {
				f.exec(t, "update aksara_operation_outbox set "+group.set+" where id = $1", operation[0])
				n++
			}
		}
		got, err := f.Status(t.Context(), namespace, scope)
		if err != nil {
			t.Fatal(err)
		}
		if age := got.OldestDue; age < time.Hour || age > time.Hour+time.Minute {
			t.Errorf("the oldest due row is %s old, want 1h", age)
		}
		got.OldestDue = 0
		if want := (store.Status{Due: 2, InFlight: 3, Delayed: 4, Parked: 5}); got != want {
			t.Errorf("status of %d rows: %+v, want %+v", n, got, want)
		}
	})
}

func TestStatusStopsCounting(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		f.fill(t, scope, store.CountCap+10, 1)
		for due, want := range map[string]store.Status{
			`'2026-01-01'`: {Due: store.CountCap},
			`clock_timestamp() + interval '1 minute'`: {Delayed: store.CountCap},
			`'infinity'`: {Parked: store.CountCap},
		} {
			f.exec(t, "update aksara_operation_outbox set next_attempt_at = "+due)
			got, err := f.Status(t.Context(), namespace, scope)
			got.OldestDue = 0
			if err != nil || got != want {
				t.Errorf("%s: %+v, %v, want %+v", due, got, err, want)
			}
			waiting, err := f.Waiting(t.Context(), []envelope.Scope{tenant(t, "none"), scope})
			if err != nil || !slices.Equal(waiting, []bool{false, true}) {
				t.Errorf("%s: waiting %v, %v, want only the second", due, waiting, err)
			}
		}
	})
}
