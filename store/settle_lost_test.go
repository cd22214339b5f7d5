package store_test

import (
	"slices"
	"testing"
	"time"

	"outboxrelay/relay"
)

// expire ends the lease of all claims.
func (f *fixture) expire(t testing.TB) {
	t.Helper()
	f.exec(t, `update aksara_operation_outbox set claim_expires_at = clock_timestamp() where claim_expires_at > clock_timestamp()`)
}

// takenOver claims one row, lets its lease end and claims it again.
func (f *fixture) takenOver(t *testing.T, name string) (stale, fresh relay.Claim) {
	t.Helper()
	scope := tenant(t, name)
	f.fill(t, scope, 1, 1)
	f.exec(t, `update aksara_operation_outbox set last_error = 'before' where tenant_scope = $1`, scope.Stored())
	stale = f.claim(t, scope)
	f.expire(t)
	fresh = f.abandoned(t, scope)
	if len(stale.Rows) != 1 || len(fresh.Rows) != 1 {
		t.Fatalf("claimed %d and %d rows, want 1 and 1", len(stale.Rows), len(fresh.Rows))
	}
	if got := fresh.Rows[0]; got.Expired != stale.Token || got.Attempts != 2 {
		t.Errorf("taken over: expired %q, attempts %d, want %q and 2", got.Expired, got.Attempts, stale.Token)
	}
	return stale, fresh
}

// While nobody else took the row, a lease that is over is as good as one that is not.
func TestSettleAfterTheLease(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for name, verdict := range map[string]relay.Verdict{
			"exported": {Exported: true},
			"failed":   {Wait: time.Minute, Error: "broken"},
		} {
			scope := tenant(t, name)
			f.fill(t, scope, 1, 1)
			claim := f.claim(t, scope)
			f.expire(t)
			if got := f.settle(t, claim, verdict); got[0].Status != relay.Written {
				t.Errorf("%s: status %d, want written", name, got[0].Status)
			}
		}
	})
}

func TestStaleOwnerChangesNothingOfTheNewOne(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for name, verdict := range map[string]relay.Verdict{
			"failed":     {Wait: time.Minute, Error: "broken"},
			"parked":     {Wait: relay.Park, Error: "too large"},
			"given back": {Wait: relay.KeepDue, Refund: true},
		} {
			stale, fresh := f.takenOver(t, name)
			before := f.snapshot(t)
			if got := f.settle(t, stale, verdict); got[0].Status != relay.Lost {
				t.Errorf("%s: status %d, want lost", name, got[0].Status)
			}
			if changed := before.changed(f.snapshot(t)); len(changed) != 0 {
				t.Errorf("%s: changed %v, want nothing", name, changed)
			}
			if got := f.settle(t, fresh, relay.Verdict{Exported: true}); got[0].Status != relay.Written {
				t.Errorf("%s: the new owner's status %d, want written", name, got[0].Status)
			}
		}
	})
}

// A stale owner whose event was delivered marks the row all the same, and nothing else.
// Whatever the new owner does then changes nothing but that the row ends clean.
func TestLateMark(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, f *fixture) {
		for name, verdict := range map[string]relay.Verdict{
			"exported": {Exported: true},
			"failed":   {Wait: time.Minute, Error: "broken"},
			"parked":   {Wait: relay.Park, Error: "too large"},
			"returned": {Wait: relay.KeepDue, Refund: true},
		} {
			stale, fresh := f.takenOver(t, name)
			id := stale.Rows[0].ID
			before := f.snapshot(t)
			results := f.settle(t, stale, relay.Verdict{Exported: true})
			if results[0].Status != relay.MarkedLate || results[0].Lag <= 0 {
				t.Errorf("%s: late mark: %+v", name, results[0])
			}
			marked := f.snapshot(t)
			if got := before.changed(marked); len(got) != 1 || !slices.Equal(got[outboxKey(id)], []string{"exported_at"}) {
				t.Errorf("%s: the late mark changed %v, want exported_at of row %d", name, got, id)
			}
			if got := f.settle(t, fresh, verdict); got[0].Status != relay.Lost {
				t.Errorf("%s: the new owner's status %d, want lost", name, got[0].Status)
			}
			want := []string{"claim_expires_at", "claimed_by", "last_error"}
			after := f.snapshot(t)
			if got := marked.changed(after); len(got) != 1 || !slices.Equal(got[outboxKey(id)], want) {
				t.Errorf("%s: the new owner changed %v, want %s of row %d", name, got, want, id)
			}
			for _, column := range want {
				if got := string(after[outboxKey(id)][column]); got != "null" {
					t.Errorf("%s: %s = %s on an exported row", name, column, got)
				}
			}
		}
	})
}

// After a database was restored its ids are given to other events. A mark that comes
// from before must not hit them.
func TestLateMarkKnowsItsEvent(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		other := f.fill(t, tenant(t, "elsewhere"), 1, 1)[0][0]
		for name, change := range map[string]string{
			"another operation": `operation_id = (select operation_id from aksara_operation_outbox where id = $2)`,
			"another time":      `created_at = created_at + interval '1 microsecond'`,
			"another scope":     `tenant_scope = 'elsewhere'`,
			"deleted":           ``,
		} {
			id := f.fill(t, scope, 1, 1)[0][0]
			claim := f.claim(t, scope)
			switch {
			case change == "":
				f.exec(t, "delete from aksara_operation_outbox where id = $1", id)
			default:
				f.exec(t, "update aksara_operation_outbox set claimed_by = 'new', "+change+" where id = $1 and $2::bigint > 0", id, other)
			}
			before := f.snapshot(t)
			if got := f.settle(t, claim, relay.Verdict{Exported: true}); got[0].Status != relay.Lost {
				t.Errorf("%s: status %d, want lost", name, got[0].Status)
			}
			if changed := before.changed(f.snapshot(t)); len(changed) != 0 {
				t.Errorf("%s: changed %v, want nothing", name, changed)
			}
		}
	})
}

// Instants that Go's clock or the driver can't hold are read, compared and subtracted
// all the same: a mark that the database refuses would be tried for ever.
func TestOddInstants(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for _, created := range []string{
			"infinity", "-infinity", "4713-01-01 00:00:00+00 BC", "294276-12-31 23:59:59.999999+00", "2026-02-03 04:05:06.000001+00",
		} {
			for holder, want := range map[string]relay.Status{"claimed_by": relay.Written, "'new'": relay.MarkedLate} {
				scope := tenant(t, created+holder)
				id := f.fill(t, scope, 1, 1)[0][0]
				f.exec(t, "update aksara_operation_outbox set created_at = $2::text::timestamptz where id = $1", id, created)
				claim := f.claim(t, scope)
				f.exec(t, "update aksara_operation_outbox set claimed_by = "+holder+" where id = $1", id)
				if got := f.settle(t, claim, relay.Verdict{Exported: true}); got[0].Status != want {
					t.Errorf("created at %s, held by %s: status %d, want %d", created, holder, got[0].Status, want)
				}
			}
		}
	})
}

// An answer may be lost, so the same settlement may come twice.
func TestSettleTwice(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		f.fill(t, scope, 4, 1)
		claim := f.claim(t, scope)
		verdicts := []relay.Verdict{
			{Row: &claim.Rows[0], Exported: true},
			{Row: &claim.Rows[1], Wait: time.Minute, Error: "broken"},
			{Row: &claim.Rows[2], Wait: relay.Park, Error: "too large"},
			{Row: &claim.Rows[3], Wait: relay.KeepDue, Refund: true},
		}
		if _, err := f.Settle(t.Context(), claim, verdicts); err != nil {
			t.Fatal(err)
		}
		before := f.snapshot(t)
		if _, err := f.Settle(t.Context(), claim, verdicts); err != nil {
			t.Fatal(err)
		}
		if changed := before.changed(f.snapshot(t)); len(changed) != 0 {
			t.Errorf("the second settlement changed %v", changed)
		}
	})
}

// A claim's token opens no other claim's rows, and no other scope's.
func TestSettleNeedsTheToken(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		f.fill(t, scope, 1, 2)
		claim := f.claim(t, scope)
		foreign := claim
		foreign.Token = claim.Token + "0"
		elsewhere := claim
		elsewhere.Scope = tenant(t, "Acme")
		before := f.snapshot(t)
		for name, c := range map[string]relay.Claim{"token": foreign, "scope": elsewhere} {
			for _, verdict := range []relay.Verdict{{Wait: relay.Park, Error: "x"}, {Wait: relay.KeepDue, Refund: true}} {
				for _, result := range f.settle(t, c, verdict) {
					if result.Status != relay.Lost {
						t.Errorf("another %s: status %d, want lost", name, result.Status)
					}
				}
			}
		}
		if got := f.settle(t, elsewhere, relay.Verdict{Exported: true}); got[0].Status != relay.Lost {
			t.Errorf("another scope's mark: status %d, want lost", got[0].Status)
		}
		if changed := before.changed(f.snapshot(t)); len(changed) != 0 {
			t.Errorf("changed %v, want nothing", changed)
		}
	})
}
