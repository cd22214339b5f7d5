package relay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

func TestDelivers(t *testing.T) {
	bubble(t, func(f *fixture) {
		scopes := []envelope.Scope{f.scope("acme"), f.scope("initech"), envelope.NonTenant()}
		var operations []uuid.UUID
		for _, scope := range scopes {
			for range 100 {
				operations = append(operations, f.operation(scope, 5))
			}
		}
		f.config.BatchRows = 70
		f.make()
		stop := f.start(scopes...)
		f.await("all are exported", f.drained(scopes...))
		stop()
		for _, operation := range operations {
			f.deliveredOnce(operation, 5)
		}
		for _, scope := range scopes {
			for _, row := range f.store.Rows(scope) {
				if row.Attempts != 1 || row.LastError != "" || row.ClaimedBy != "" {
					t.Errorf("%s: %v, want 1 attempt and a clean row", scope, row)
				}
			}
		}
	})
}

// TestEventsAreTheRows: what reaches the sink is made of the row and the configuration,
// and the events of one operation stand together.
func TestEventsAreTheRows(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		a, b := uuid.New(), uuid.New()
		for range 3 {
			f.store.Add(namespace, acme, a, 1)
			f.store.Add(namespace, acme, b, 1)
		}
		stop := f.start(acme)
		f.await("all are exported", f.drained(acme))
		stop()
		if n := f.sink.Sends(); n != 1 {
			t.Errorf("6 rows of one scope took %d sends, want 1", n)
		}
		var order []uuid.UUID
		for _, e := range f.sink.Delivered() {
			order = append(order, e.OperationID)
			if e.Namespace != namespace || e.Scope != acme || e.Type != "aksara.operation.transition" || e.Time.IsZero() {
				t.Errorf("event %+v is not the row's", e)
			}
		}
		if want := []uuid.UUID{a, a, a, b, b, b}; !slices.Equal(order, want) {
			t.Errorf("events came in the order of %v, want %v", order, want)
		}
	})
}

// TestSomeFail: a failed row and what is behind it come due together, others are not
// held up, and all are delivered in order when the sink takes them.
func TestSomeFail(t *testing.T) {
	for _, class := range []relay.Class{relay.Environment, relay.Failed} {
		t.Run(class.String(), func(t *testing.T) {
			bubble(t, func(f *fixture) {
				acme := f.scope("acme")
				bad, good := f.operation(acme, 3), f.operation(acme, 3)
				f.sink.Handle = func(_ context.Context, send *relaytest.Send) {
					if send.N == 1 {
						send.Answer(0, class.Wrap(errors.New("no")))
					}
					send.Rest(nil)
				}
				stop := f.start(acme)
				time.Sleep(time.Second)
				f.deliveredOnce(good, 3)
				head, behind := f.row(acme, 0), f.row(acme, 1)
				if wait := head.Due.Sub(head.Created); head.Attempts != 1 || head.LastError != "no" ||
					wait < relay.DefaultRetryDelay/2 || wait > relay.DefaultRetryDelay {
					t.Errorf("%v, want it failed once and due in %s at most", head, relay.DefaultRetryDelay)
				}
				if behind.Attempts != 0 || behind.LastError != "" || !behind.Due.Equal(head.Due) {
					t.Errorf("behind it: %v, want it due together with the first, at no attempt", behind)
				}
				f.await("all are exported", f.drained(acme))
				stop()
				f.deliveredOnce(bad, 3)
				if n, err := f.tally.trouble(relay.SendTrouble); n != 1 || err.Error() != "no" {
					t.Errorf("send trouble was told %d times (%v), want once", n, err)
				}
			})
		})
	}
}

// TestGivenBack: what was not attempted for a reason outside the event costs nothing.
func TestGivenBack(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		operation := f.operation(acme, 3)
		f.sink.Handle = func(_ context.Context, send *relaytest.Send) {
			if send.N <= 10 {
				send.Rest(relay.NotAttempted.Wrap(errors.New("not now")))
				return
			}
			send.Rest(nil)
		}
		stop := f.start(acme)
		f.await("all are exported", f.drained(acme))
		stop()
		f.deliveredOnce(operation, 3)
		for i := range 3 {
			if got := f.row(acme, i); got.Attempts != 1 {
				t.Errorf("%v, want 1 attempt", got)
			}
		}
	})
}

// TestFailsForLong: waits grow to the longest, attempts are counted and never spent.
func TestFailsForLong(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.config.PollInterval = 5 * time.Second
		f.make()
		acme := f.scope("acme")
		operation := f.operation(acme, 1)
		begin := time.Now()
		var at []time.Duration
		f.sink.Handle = func(_ context.Context, send *relaytest.Send) {
			at = append(at, time.Since(begin)) // one after the other, since there is one row
			if send.N <= 40 {
				send.Rest(errors.New("no"))
				return
			}
			send.Rest(nil)
		}
		stop := f.start(acme)
		time.Sleep(3 * time.Hour)
		f.await("it is exported", f.drained(acme))
		stop()
		f.deliveredOnce(operation, 1)
		if got := f.row(acme, 0); got.Attempts != 41 || got.LastError != "" {
			t.Errorf("%v, want 41 attempts and no error", got)
		}
		full := relay.DefaultRetryDelay
		for i := 1; i < len(at); i++ {
			if wait := at[i] - at[i-1]; wait < full/2 || wait > full+f.config.PollInterval {
				t.Errorf("attempt %d came after %s, want %s to %s", i+1, wait, full/2, full)
			}
			full = min(2*full, relay.DefaultRetryMaxDelay)
		}
	})
}

// TestRowFaults: a row that can't become an event is parked, with what is behind it;
// nobody else is held up.
func TestRowFaults(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		bad, good := uuid.New(), uuid.New()
		for range 4 {
			f.store.Add(namespace, acme, bad, 1)
			f.store.Add(namespace, acme, good, 1)
		}
		f.store.Edit(func(r *relaytest.Stored) {
			if r.Operation == bad && r.Version == 3 {
				r.Payload = []byte(`{"state_version": 0}`)
			}
		})
		f.config.PollInterval = time.Minute
		f.make()
		stop := f.start(acme)
		f.await("the good ones are exported", func() bool { return len(f.versions(good)) == 4 && len(f.versions(bad)) == 2 })
		time.Sleep(72 * time.Hour)
		f.deliveredOnce(good, 4)
		f.deliveredOnce(bad, 2)
		if got := f.row(acme, 4); !got.Parked || got.LastError == "" || got.Attempts != 1 {
			t.Errorf("%v, want it parked with the fault", got)
		}
		if got := f.row(acme, 6); got.Parked || got.Attempts != 0 || got.LastError != "" || got.Due.Sub(f.store.Now()) > 24*time.Hour {
			t.Errorf("behind it: %v, want it at no attempt, due within a day", got)
		}
		if n, err := f.tally.trouble(relay.RowTrouble); n != 1 || err.Error() != f.row(acme, 4).LastError {
			t.Errorf("row trouble was told %d times (%v), want once", n, err)
		}
		f.store.Edit(func(r *relaytest.Stored) { // somebody mends it, and retries the operation
			if r.Operation == bad && !r.Exported {
				r.Payload = fmt.Appendf(nil, `{"state_version": %d}`, r.Version)
				r.Parked, r.Due = false, r.Created
			}
		})
		f.await("all are exported", f.drained(acme))
		stop()
		f.deliveredOnce(bad, 4)
	})
}

// TestTooLargeToRead: a payload that the store did not read is a fault of its row.
func TestTooLargeToRead(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		f.operation(acme, 1)
		f.store.Edit(func(r *relaytest.Stored) { r.Payload = nil })
		stop := f.start(acme)
		f.await("it is parked", func() bool { return f.row(acme, 0).Parked })
		stop()
		if len(f.sink.Delivered()) != 0 {
			t.Error("an event without its payload was sent")
		}
	})
}

// TestFirstAnswerCounts: whatever a sink says later about the same event.
func TestFirstAnswerCounts(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		f.operation(acme, 1)
		f.operation(acme, 1)
		f.sink.Handle = func(_ context.Context, send *relaytest.Send) {
			if send.N > 1 {
				return // the failed one is not answered a second time
			}
			send.Answer(0, nil)
			send.Answer(0, errors.New("late"))
			send.Answer(0, nil)
			send.Answer(1, errors.New("first"))
			send.Answer(1, nil)
			send.Answer(1, relay.RowFault.Wrap(errors.New("late")))
		}
		stop := f.start(acme)
		time.Sleep(time.Second)
		if got := f.row(acme, 0); !got.Exported {
			t.Errorf("%v, want it exported", got)
		}
		if got := f.row(acme, 1); got.Exported || got.LastError != "first" || got.Parked {
			t.Errorf("%v, want it failed", got)
		}
		stop()
	})
}

// TestForeignClaims: a row whose claim by another kind of exporter ran out is told of.
func TestForeignClaims(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		operation := f.operation(acme, 2)
		f.store.Seize(1, "python-worker", time.Minute)
		stop := f.start(acme)
		f.await("all are exported", f.drained(acme))
		stop()
		f.deliveredOnce(operation, 2)
		if n, _ := f.tally.trouble(relay.ForeignClaims); n != 1 {
			t.Errorf("foreign claims were told %d times, want once", n)
		}
	})
}
