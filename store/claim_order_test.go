package store_test

import (
	"slices"
	"testing"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

// An operation of five events, one or more of them held up. Positions count from 0.
func TestClaimTakesAnUnbrokenRun(t *testing.T) {
	t.Parallel()
	const (
		waiting = `next_attempt_at = clock_timestamp() + interval '1 hour'`
		parked  = `next_attempt_at = 'infinity', last_error = 'broken'`
		leased  = `claimed_by = 'py-1', claim_expires_at = clock_timestamp() + interval '1 hour'`
		expired = `claimed_by = 'gone', claim_expires_at = clock_timestamp() - interval '1 hour'`
		done    = `exported_at = clock_timestamp()`
	)
	cases := []struct {
		name   string
		held   map[int]string
		want   []int
		pushed int // rows that are moved behind the waiting one
	}{
		{"nothing held up", nil, []int{0, 1, 2, 3, 4}, 0},
		{"head waits", map[int]string{0: waiting}, nil, 4},
		{"head parked", map[int]string{0: parked}, nil, 4},
		{"head leased", map[int]string{0: leased}, nil, 0},
		{"head's lease over", map[int]string{0: expired}, nil, 0},
		{"middle's lease over", map[int]string{2: expired}, []int{0, 1}, 0},
		{"head's lease over, next waits", map[int]string{0: expired, 1: waiting}, nil, 3},
		{"middle waits", map[int]string{2: waiting}, []int{0, 1}, 2},
		{"middle parked", map[int]string{2: parked}, []int{0, 1}, 2},
		{"middle leased", map[int]string{2: leased}, []int{0, 1}, 0},
		{"last waits", map[int]string{4: waiting}, []int{0, 1, 2, 3}, 0},
		{"head exported", map[int]string{0: done}, []int{1, 2, 3, 4}, 0},
		{"middle exported", map[int]string{2: done}, []int{0, 1, 3, 4}, 0},
		{"head leased, next waits", map[int]string{0: leased, 1: waiting}, nil, 3},
		{"middle leased, next waits", map[int]string{1: leased, 2: waiting}, []int{0}, 2},
		{"two wait", map[int]string{1: waiting, 3: parked}, []int{0}, 2},
	}
	everywhere(t, func(t *testing.T, f *fixture) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				scope := tenant(t, c.name)
				rows := f.fill(t, scope, 1, 5)[0]
				for i, set := range c.held {
					f.exec(t, "update aksara_operation_outbox set "+set+" where id = $1", rows[i])
				}
				var want []int64
				for _, i := range c.want {
					want = append(want, rows[i])
				}
				claim := f.claim(t, scope)
				if got := ids(claim); !slices.Equal(got, want) || claim.Pushed != c.pushed {
					t.Errorf("claimed %d and pushed %d, want %d and %d", got, claim.Pushed, want, c.pushed)
				}
				if again := f.claim(t, scope); len(again.Rows) != 0 || again.Pushed != 0 {
					t.Errorf("a second claim took %d and pushed %d, want none", ids(again), again.Pushed)
				}
			})
		}
	})
}

func TestRowsAreMovedBehindWhatTheyWaitFor(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		rows := f.fill(t, scope, 1, 7)[0]
		waiting, parked := 1, 4
		f.exec(t, `update aksara_operation_outbox set next_attempt_at = clock_timestamp() + interval '1 hour' where id = $1`, rows[waiting])
		f.exec(t, `update aksara_operation_outbox set next_attempt_at = 'infinity' where id = $1`, rows[parked])
		start := f.now(t)
		if claim := f.claim(t, scope); claim.Pushed != 4 {
			t.Errorf("pushed %d rows, want 4", claim.Pushed)
		}
		if n := value[int](t, f, `select count(distinct next_attempt_at) from aksara_operation_outbox where id = any($1)`,
			rows[waiting:parked]); n != 1 {
			t.Errorf("rows behind a waiting one do not all come due with it: %d due times", n)
		}
		// At infinity nobody would look for them any more.
		for _, id := range rows[parked+1:] {
			f.checkInstant(t, id, "next_attempt_at", start, 24*time.Hour)
		}
		if due := value[string](t, f, "select next_attempt_at::text from aksara_operation_outbox where id = $1", rows[parked]); due != "infinity" {
			t.Errorf("the parked row is due at %s", due)
		}
	})
}

// Many rows behind a parked one cost one write each, once, and stand in nobody's way.
func TestRowsAreMovedOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		stuck := f.fill(t, scope, 1, 301)[0]
		f.exec(t, `update aksara_operation_outbox set next_attempt_at = 'infinity' where id = $1`, stuck[0])
		free := slices.Concat(f.fill(t, scope, 1, 10)...)

		req := request(scope)
		req.Rows = 100
		pushed := 0
		for i := 0; pushed < 300; i++ {
			claim := f.claimWith(t, req)
			if claim.Pushed == 0 || !claim.More || i == 10 {
				t.Fatalf("claim %d pushed %d, more %t, after %d in all", i, claim.Pushed, claim.More, pushed)
			}
			pushed += claim.Pushed
		}
		if got := ids(f.claimWith(t, req)); !slices.Equal(got, free) {
			t.Errorf("claimed %d, want the rows of the free operation", got)
		}
		if claim := f.claimWith(t, req); pushed != 300 || claim.Seen != 0 {
			t.Errorf("%d rows pushed in all, want 300; %d seen after it", pushed, claim.Seen)
		}
	})
}

// Behind a row that another session has locked nothing is claimed and nothing moved,
// because that row is due.
func TestClaimWaitsBehindLockedRows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for name, locked := range map[string]int{"head": 0, "middle": 2} {
			t.Run(name, func(t *testing.T) {
				scope := tenant(t, name)
				rows := f.fill(t, scope, 1, 5)[0]
				tx := f.session(t)
				if _, err := tx.Exec(t.Context(), "select 1 from aksara_operation_outbox where id = $1 for update", rows[locked]); err != nil {
					t.Fatal(err)
				}
				claim := f.claim(t, scope)
				if got := ids(claim); !slices.Equal(got, rows[:locked]) || claim.Pushed != 0 {
					t.Errorf("claimed %d and pushed %d, want %d and 0", got, claim.Pushed, rows[:locked])
				}
				f.settle(t, claim, relay.Verdict{Exported: true})
				if err := tx.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := ids(f.claim(t, scope)); !slices.Equal(got, rows[locked:]) {
					t.Errorf("claimed %d after the lock was gone, want %d", got, rows[locked:])
				}
			})
		}
	})
}

// Due times that contradict the order of versions, as after a step of the clock, delay
// rows at most.
func TestOrderHoldsAgainstDueTimes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for name, due := range map[string]string{
			"reversed":     `clock_timestamp() - id * interval '1 second'`,
			"head last":    `clock_timestamp() - case when id = (select min(id) from aksara_operation_outbox i where i.tenant_scope = o.tenant_scope) then interval '1 hour' else interval '2 hours' end`,
			"odd and even": `clock_timestamp() - (id % 2) * interval '1 hour' - id * interval '1 second'`,
			"all alike":    `'2026-01-01'`,
		} {
			for _, batch := range []int{1, 3, 100} {
				t.Run(name, func(t *testing.T) {
					scope := tenant(t, t.Name())
					rows := f.fill(t, scope, 2, 8)
					f.exec(t, "update aksara_operation_outbox o set next_attempt_at = "+due+" where tenant_scope = $1", scope.Stored())
					got := f.drain(t, scope, batch)
					for _, want := range rows {
						mine := slices.DeleteFunc(slices.Clone(got), func(id int64) bool { return !slices.Contains(want, id) })
						if !slices.Equal(mine, want) {
							t.Errorf("batch %d: claimed in the order %d, want %d", batch, mine, want)
						}
					}
				})
			}
		}
	})
}

// drain claims and marks until nothing is left, and gives the ids as they came.
func (f *fixture) drain(t testing.TB, scope envelope.Scope, batch int) (all []int64) {
	t.Helper()
	req := request(scope)
	req.Rows = batch
	for range 1000 {
		claim := f.claimWith(t, req)
		if len(claim.Rows) == 0 && !claim.More {
			return all
		}
		all = append(all, ids(claim)...)
		f.settle(t, claim, relay.Verdict{Exported: true})
	}
	t.Fatal("the scope is not drained after 1000 claims")
	return nil
}
