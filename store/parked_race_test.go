package store_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/store"
)

// retrying runs a retry beside the test and gives its answer.
func (f *fixture) retrying(t testing.TB, scope envelope.Scope, id int64) <-chan []store.Ended {
	answer := make(chan []store.Ended, 1)
	go func() {
		done, err := f.Retry(context.WithoutCancel(t.Context()), namespace, scope, []int64{id})
		if err != nil {
			t.Errorf("retry: %v", err)
		}
		answer <- done
	}()
	return answer
}

// Somebody else is about to end the parking: the event is judged by what they did.
func TestRetryWaitsForWhoHoldsTheEvent(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for set, behind := range map[string][]int64{
			`exported_at = clock_timestamp()`: nil, `next_attempt_at = clock_timestamp()`: nil, `last_error = 'x'`: {1},
		} {
			scope := tenant(t, set)
			rows := f.park(t, scope, 1, 2)[0]
			tx := f.session(t)
			if _, err := tx.Exec(t.Context(), "update aksara_operation_outbox set "+set+" where id = $1", rows[0]); err != nil {
				t.Fatal(err)
			}
			answer := f.retrying(t, scope, rows[0])
			f.awaitBlocked(t)
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			var want []int64
			if behind != nil {
				want = []int64{rows[0], behind[0]}
			}
			checkEnded(t, <-answer, want...)
		}
	})
}

// A claim that has seen the event parked is moving a row behind it a day ahead; and one
// more row comes that the retry does not see, and is moved as well.
func TestRetryFreesWhatAClaimIsMoving(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		rows := f.park(t, scope, 1, 2)[0]
		operation := value[uuid.UUID](t, f, `select operation_id from aksara_operation_outbox where id = $1`, rows[0])
		f.exec(t, `update aksara_operation_outbox set next_attempt_at = clock_timestamp() where id = $1`, rows[1])
		moving := f.frame(t, scope)
		req := request(scope)
		if _, err := moving.Exec(t.Context(), f.ClaimText(req, f.indexed), claimArguments(req)...); err != nil {
			t.Fatal(err)
		}
		answer := f.retrying(t, scope, rows[0])
		f.awaitBlocked(t)
		if err := app.Advance(t.Context(), f.admin, scope, operation, "retry_scheduled", "ready"); err != nil {
			t.Fatal(err)
		}
		if claim := f.claim(t, scope); claim.Pushed != 1 {
			t.Fatalf("a claim moved %d rows, want 1", claim.Pushed)
		}
		if err := moving.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkEnded(t, <-answer, rows[0], 1)
		rows = query[int64](t, f, `select id from aksara_operation_outbox order by id`)
		if got := ids(f.claim(t, scope)); len(rows) != 3 || !slices.Equal(got, rows) {
			t.Errorf("claimed %d, want %d", got, rows)
		}
	})
}

// A claim goes on beside a retry and never waits for it.
func TestClaimPassesOverWhatIsRetried(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		rows := f.park(t, scope, 1, 3)[0]
		tx := f.session(t)
		if _, err := tx.Exec(t.Context(), `select 1 from aksara_operation_outbox where id = $1 for update`, rows[2]); err != nil {
			t.Fatal(err)
		}
		answer := f.retrying(t, scope, rows[0])
		f.awaitBlocked(t)
		free := f.fill(t, scope, 1, 2)[0]
		if got := ids(f.claim(t, scope)); !slices.Equal(got, free) {
			t.Errorf("claimed %d, want %d", got, free)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkEnded(t, <-answer, rows[0], 2)
		if got := ids(f.claim(t, scope)); !slices.Equal(got, rows) {
			t.Errorf("claimed %d, want %d", got, rows)
		}
	})
}

// Several operators at once, in any order: each event is ended once, by one of them.
func TestOperatorsAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		var asked []int64
		for _, rows := range f.park(t, scope, 150, 3) {
			asked = append(asked, rows[0])
		}
		var mu sync.Mutex
		retried, discarded := map[int64]int{}, map[int64]int{}
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				done, err := []store.Ended(nil), error(nil)
				into := retried
				if i%2 == 0 {
					done, err = f.Retry(t.Context(), namespace, scope, asked)
				} else {
					into = discarded
					done, err = f.Discard(t.Context(), namespace, scope, asked, fmt.Sprint("by ", i))
				}
				if err != nil {
					t.Errorf("operator %d: %v", i, err)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, e := range done {
					into[e.ID]++
				}
			})
		}
		all.Wait()
		for _, id := range asked {
			if retried[id]+discarded[id] != 1 {
				t.Errorf("event %d was retried %d times and discarded %d times", id, retried[id], discarded[id])
			}
		}
		if n := value[int](t, f, `select count(*) from aksara_operation_outbox where last_error like 'discarded: by %'`); n != len(discarded) {
			t.Errorf("%d rows are discarded, want %d", n, len(discarded))
		}
		if n := value[int](t, f, `select count(*) from aksara_operation_outbox where exported_at is null and next_attempt_at > clock_timestamp()`); n != 0 {
			t.Errorf("%d rows still wait", n)
		}
		if claim := f.claim(t, scope); len(claim.Rows) != 450-len(discarded) {
			t.Errorf("claimed %d rows, want %d", len(claim.Rows), 450-len(discarded))
		}
	})
}
