package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"outboxrelay/relay"
)

// What each verdict writes, column by column. A row that was claimed once starts with
// two attempts, a former error and a due time in the past.
func TestVerdictsWriteWhatTheyAreToWrite(t *testing.T) {
	t.Parallel()
	const (
		now   = "a moment ago"
		same  = "as it was"
		null  = "null"
		never = `"infinity"`
	)
	type columns struct{ exported, attempts, due, err string }
	cases := []struct {
		name    string
		verdict relay.Verdict
		want    columns
		wait    time.Duration // where due says now
	}{
		{"exported", relay.Verdict{Exported: true}, columns{now, "3", same, null}, 0},
		{"exported, whatever else is said", relay.Verdict{Exported: true, Wait: relay.Park, Error: "no", Refund: true}, columns{now, "3", same, null}, 0},
		{"parked", relay.Verdict{Wait: relay.Park, Error: "too large"}, columns{null, "3", never, `"too large"`}, 0},
		{"retried", relay.Verdict{Wait: 90 * time.Second, Error: "no broker"}, columns{null, "3", now, `"no broker"`}, 90 * time.Second},
		{"retried soon", relay.Verdict{Wait: 1500 * time.Millisecond, Error: "no broker"}, columns{null, "3", now, `"no broker"`}, 1500 * time.Millisecond},
		{"retried at once", relay.Verdict{Error: "no broker"}, columns{null, "3", now, `"no broker"`}, 0},
		{"held back", relay.Verdict{Wait: time.Hour, Refund: true}, columns{null, "2", now, `"before"`}, time.Hour},
		{"given back", relay.Verdict{Wait: relay.KeepDue, Refund: true}, columns{null, "2", same, `"before"`}, 0},
		{"given back with an error", relay.Verdict{Wait: relay.KeepDue, Error: "odd"}, columns{null, "3", same, `"odd"`}, 0},
		{"odd error text", relay.Verdict{Wait: relay.Park, Error: `'"\ ` + strings.Repeat("ü", 1996)}, columns{null, "3", never, `"'\"\\ ` + strings.Repeat("ü", 1996) + `"`}, 0},
	}
	everywhere(t, func(t *testing.T, f *fixture) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				scope := tenant(t, c.name)
				id := f.fill(t, scope, 1, 1)[0][0]
				f.exec(t, `update aksara_operation_outbox set export_attempts = 2, last_error = 'before' where id = $1`, id)
				claim := f.claim(t, scope)
				before := f.snapshot(t)
				start := f.now(t)
				results := f.settle(t, claim, c.verdict)
				if results[0].Status != relay.Written {
					t.Fatalf("status %d, want written", results[0].Status)
				}
				after := f.snapshot(t)
				check := func(column, want string) {
					t.Helper()
					was, got := string(before[outboxKey(id)][column]), string(after[outboxKey(id)][column])
					switch want {
					case same:
						want = was
					case now:
						f.checkInstant(t, id, column, start, c.wait)
						return
					}
					if got != want {
						t.Errorf("%s = %s, want %s", column, got, want)
					}
				}
				check("exported_at", c.want.exported)
				check("export_attempts", c.want.attempts)
				check("next_attempt_at", c.want.due)
				check("last_error", c.want.err)
				check("claimed_by", null)
				check("claim_expires_at", null)
				f.checkChanges(t, before.changed(after), id)
			})
		}
	})
}

// now is the database's clock.
func (f *fixture) now(t testing.TB) time.Time {
	t.Helper()
	return value[time.Time](t, f, "select clock_timestamp()")
}

// checkInstant tells whether a column is so far ahead of an instant between start and
// the database's now.
func (f *fixture) checkInstant(t *testing.T, id int64, column string, start time.Time, ahead time.Duration) {
	t.Helper()
	if ok := value[bool](t, f, "select "+column+" - $2 * interval '1 second' between $3 and clock_timestamp() from aksara_operation_outbox where id = $1",
		id, ahead.Seconds(), start); !ok {
		t.Errorf("%s is not %s ahead of when it was written", column, ahead)
	}
}

// checkChanges makes sure that nothing but the row has changed, and of it only what a
// relay may write.
func (f *fixture) checkChanges(t *testing.T, changed map[rowKey][]string, id int64) {
	t.Helper()
	ours := []string{"claim_expires_at", "claimed_by", "export_attempts", "exported_at", "last_error", "next_attempt_at"}
	for key, columns := range changed {
		if key != outboxKey(id) {
			t.Errorf("%v changed: %s", key, columns)
		}
		for _, column := range columns {
			if !slices.Contains(ours, column) {
				t.Errorf("column %s changed", column)
			}
		}
	}
}

// All verdicts of a claim in one call: each row gets its own, rows without one stay
// claimed, and rows delayed alike come due at one instant, so that their ids decide.
func TestSettleMixed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		f.fill(t, scope, 1, 8)
		claim := f.claim(t, scope)
		row := func(i int) *relay.Row { return &claim.Rows[i] }
		verdicts := []relay.Verdict{ // in no order
			{Row: row(6), Wait: time.Hour, Refund: true},
			{Row: row(0), Exported: true},
			{Row: row(4), Wait: time.Hour, Refund: true},
			{Row: row(3), Wait: time.Hour, Error: "broken"},
			{Row: row(1), Exported: true},
			{Row: row(5), Wait: relay.Park, Error: "bad"},
		}
		results, err := f.Settle(t.Context(), claim, verdicts)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range verdicts {
			if results[i].Status != relay.Written {
				t.Errorf("row %d: status %d, want written", v.Row.ID, results[i].Status)
			}
			lag := results[i].Lag
			real := time.Duration(value[float64](t, f, `select coalesce(extract(epoch from exported_at - created_at), 0)::float8
				from aksara_operation_outbox where id = $1`, v.Row.ID) * float64(time.Second))
			if v.Exported != (lag > 0) || (lag-real).Abs() > time.Microsecond {
				t.Errorf("row %d: lag %s, want %s", v.Row.ID, lag, real)
			}
		}
		if n := value[int](t, f, `select count(distinct next_attempt_at) from aksara_operation_outbox where id = any($1)`,
			[]int64{row(3).ID, row(4).ID, row(6).ID}); n != 1 {
			t.Errorf("rows delayed alike have %d due times", n)
		}
		held := query[int64](t, f, "select id from aksara_operation_outbox where claimed_by = $1 order by id", claim.Token)
		if want := []int64{row(2).ID, row(7).ID}; !slices.Equal(held, want) {
			t.Errorf("still claimed: %d, want %d", held, want)
		}
	})
}

func TestSettleNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		results, err := f.Settle(t.Context(), relay.Claim{Scope: tenant(t, "acme"), Token: "worker/1"}, nil)
		if err != nil || len(results) != 0 {
			t.Errorf("settle without verdicts: %v, %v", results, err)
		}
	})
}

// An error that the column refuses must not be settled by halves.
func TestSettleIsAllOrNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		f.fill(t, scope, 2, 1)
		claim := f.claim(t, scope)
		before := f.snapshot(t)
		_, err := f.Settle(t.Context(), claim, []relay.Verdict{
			{Row: &claim.Rows[0], Exported: true},
			{Row: &claim.Rows[1], Wait: relay.Park, Error: strings.Repeat("x", 2001)},
		})
		if err == nil {
			t.Error("an error of 2001 characters was taken")
		}
		if changed := before.changed(f.snapshot(t)); len(changed) != 0 {
			t.Errorf("changed: %v, want nothing", changed)
		}
		if got := f.settle(t, claim, relay.Verdict{Exported: true}); got[0].Status != relay.Written || got[1].Status != relay.Written {
			t.Errorf("settled after it: %v, want written", got)
		}
	})
}
