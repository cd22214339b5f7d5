package relay_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

// slowly answers the first send only after a time, and no later one before the test
// lets it.
func (f *fixture) slowly(after time.Duration, answer error) (letGo func()) {
	later := make(chan struct{})
	f.sink.Handle = func(ctx context.Context, send *relaytest.Send) {
		if send.N == 1 {
			time.Sleep(after)
			send.Rest(answer)
			return
		}
		select {
		case <-later:
			send.Rest(nil)
		case <-ctx.Done():
		}
	}
	return func() { close(later) }
}

// afterAllLeases is later than a claim is renewed and its last lease ends, and long
// enough for another one to have taken its rows.
const afterAllLeases = time.Minute + relay.DefaultLease + 5*time.Second

// TestAnswersWithinTheLease: an answer is written soon after it came, also when the
// delivery time-out is over and the lease was renewed, and nothing is sent twice.
func TestAnswersWithinTheLease(t *testing.T) {
	for _, after := range []time.Duration{0, 500 * time.Millisecond, 5 * time.Second, 12 * time.Second, 29 * time.Second, 35 * time.Second, 75 * time.Second} {
		for _, answer := range []error{nil, errors.New("no")} {
			name := "delivered after " + after.String()
			if answer != nil {
				name = "failed after " + after.String()
			}
			t.Run(name, func(t *testing.T) {
				bubble(t, func(f *fixture) {
					acme := f.scope("acme")
					operation := f.operation(acme, 2)
					letGo := f.slowly(after, answer)
					stop := f.start(acme)
					f.await("the answer is written", func() bool { return f.row(acme, 0).ClaimedBy == "" && f.row(acme, 0).Attempts == 1 })
					if took := f.store.Now().Sub(f.row(acme, 0).Created); took < after || took > after+1100*time.Millisecond {
						t.Errorf("it was written after %s, want soon after %s", took, after)
					}
					letGo()
					f.await("all are exported", f.drained(acme))
					stop()
					f.deliveredOnce(operation, 2)
					if n := f.tally.status(relay.Lost) + f.tally.status(relay.MarkedLate); n != 0 {
						t.Errorf("%d verdicts came too late, want none", n)
					}
				})
			})
		}
	}
}

// TestSomeAnswersAreLate: what is known is not kept back by what is not.
func TestSomeAnswersAreLate(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		for range 4 {
			f.operation(acme, 1)
		}
		f.sink.Handle = func(_ context.Context, send *relaytest.Send) {
			if send.N > 1 {
				return // the failed one, again
			}
			send.Answer(0, nil)
			time.Sleep(3 * time.Second)
			send.Answer(1, nil)
			time.Sleep(10 * time.Second)
			send.Answer(2, errors.New("no"))
			time.Sleep(10 * time.Second)
			send.Answer(3, nil)
		}
		stop := f.start(acme)
		for i, at := range []time.Duration{0, 3 * time.Second, 13 * time.Second, 23 * time.Second} {
			f.await("the answer is written", func() bool { return f.row(acme, i).ClaimedBy == "" && f.row(acme, i).Attempts == 1 })
			if took := f.store.Now().Sub(f.row(acme, i).Created); took < at || took > at+1100*time.Millisecond {
				t.Errorf("the answer to row %d was written after %s, want soon after %s", i, took, at)
			}
		}
		stop()
	})
}

// TestLateSuccess: a delivered event is marked after the lease too, which saves others
// from sending it again, and the claim of whoever has it now is not touched.
func TestLateSuccess(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		f.operation(acme, 1)
		f.slowly(afterAllLeases+5*time.Second, nil)
		stop := f.start(acme)
		time.Sleep(afterAllLeases)
		owner := f.row(acme, 0)
		if owner.Attempts != 2 || owner.Exported {
			t.Fatalf("%v, want a second claim on it", owner)
		}
		time.Sleep(6 * time.Second)
		got := f.row(acme, 0)
		if !got.Exported || got.ClaimedBy != owner.ClaimedBy || !got.Expires.Equal(owner.Expires) || got.LastError != "" || got.Attempts != 2 {
			t.Errorf("%v, want it exported and otherwise as it was: %v", got, owner)
		}
		if n := f.tally.status(relay.MarkedLate); n != 1 {
			t.Errorf("%d rows were marked late, want 1", n)
		}
		stop()
	})
}

// TestLateFailure: after the lease, a failure is nobody's business any more.
func TestLateFailure(t *testing.T) {
	for _, class := range []relay.Class{relay.RowFault, relay.Environment, relay.Failed, relay.NotAttempted, relay.Unknown} {
		t.Run(class.String(), func(t *testing.T) {
			bubble(t, func(f *fixture) {
				acme := f.scope("acme")
				f.operation(acme, 2)
				f.slowly(afterAllLeases+5*time.Second, class.Wrap(errors.New("late")))
				stop := f.start(acme)
				time.Sleep(afterAllLeases)
				before := [2]relaytest.Stored{f.row(acme, 0), f.row(acme, 1)}
				var settled atomic.Int64
				f.store.SetFault(func(_ context.Context, call relaytest.Call, _ bool) error {
					if call.Verdicts != nil {
						settled.Add(1)
					}
					return nil
				})
				time.Sleep(10 * time.Second)
				for i, want := range before {
					got := f.row(acme, i)
					got.Expires = want.Expires // renewed by the owner
					if got.String() != want.String() {
						t.Errorf("row %d is %v, want %v", i, got, want)
					}
				}
				if n := settled.Load(); n != 0 {
					t.Errorf("%d settlements were tried, want none", n)
				}
				stop()
			})
		})
	}
}

// TestLateAnswersOfMany: of a claim that is over, only what was delivered is marked.
func TestLateAnswersOfMany(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		for range 3 {
			f.operation(acme, 1)
		}
		f.sink.Handle = func(ctx context.Context, send *relaytest.Send) {
			if send.N > 1 {
				<-ctx.Done()
				return
			}
			time.Sleep(afterAllLeases + 5*time.Second)
			send.Answer(0, nil)
			send.Answer(1, errors.New("late"))
			<-ctx.Done() // the third has no answer, so the claim is never over
		}
		stop := f.start(acme)
		time.Sleep(afterAllLeases + 10*time.Second)
		for i, want := range []bool{true, false, false} {
			if got := f.row(acme, i); got.Exported != want || got.LastError != "" {
				t.Errorf("%v, want exported %t", got, want)
			}
		}
		stop()
	})
}

// TestNoAnswer: nothing is written about an event whose outcome is unknown, and its row
// comes back when the lease ends. It is renewed for a minute, unless it is certain that
// no answer will come.
func TestNoAnswer(t *testing.T) {
	for name, handle := range map[string]func(context.Context, *relaytest.Send){
		"blocks":      func(ctx context.Context, _ *relaytest.Send) { <-ctx.Done() },
		"returns":     func(context.Context, *relaytest.Send) {},
		"says so":     func(_ context.Context, s *relaytest.Send) { s.Rest(relay.Unknown.Wrap(errors.New("client closed"))) },
		"but arrived": func(_ context.Context, s *relaytest.Send) { s.Arrive(0) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				acme := f.scope("acme")
				f.operation(acme, 2)
				f.sink.Handle = handle
				stop := f.start(acme)
				const times = 10
				held := time.Minute + relay.DefaultLease
				if name == "says so" {
					held = relay.DefaultLease
				}
				time.Sleep(times * held)
				// Less often as the scope is paused longer, and the last renewal is not at the very end.
				got := f.row(acme, 0)
				if got.Exported || got.LastError != "" || got.Attempts > times+2 || got.Attempts < times/2 {
					t.Errorf("%v, want it claimed about once in each of %d times %s, without error", got, times, held)
				}
				if n := f.sink.Sends(); n != got.Attempts {
					t.Errorf("%d sends in %d claims, want one each", n, got.Attempts)
				}
				stop()
			})
		})
	}
}
