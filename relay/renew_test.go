package relay_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

// unanswered makes the sink never answer the first n sends, and deliver all others.
func (f *fixture) unanswered(n int) {
	f.sink.Handle = func(ctx context.Context, send *relaytest.Send) {
		if send.N <= n {
			<-ctx.Done()
			return
		}
		send.Rest(nil)
	}
}

// TestUnansweredClaimIsRenewed: nobody else takes rows whose events may still arrive.
func TestUnansweredClaimIsRenewed(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		f.operation(acme, 2)
		f.unanswered(1)
		stop := f.start(acme)
		time.Sleep(time.Second)
		token := f.row(acme, 0).ClaimedBy
		for range 58 {
			time.Sleep(time.Second)
			left := f.row(acme, 0).Expires.Sub(f.store.Now())
			if got := f.row(acme, 0); got.ClaimedBy != token || left < relay.DefaultLease*2/3-2*time.Second {
				t.Fatalf("%v: %s of its lease is left, want it renewed at a third of it", got, left)
			}
		}
		// Then it is given up.
		f.await("the rows are delivered by another claim", f.drained(acme))
		if got := f.row(acme, 0); got.Attempts != 2 {
			t.Errorf("%v, want 2 attempts", got)
		}
		stop()
	})
}

// TestAnsweredRowsAreNotRenewed: what was settled is free, whatever the rest waits for.
func TestAnsweredRowsAreNotRenewed(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		f.operation(acme, 1)
		f.operation(acme, 1)
		f.sink.Handle = func(ctx context.Context, send *relaytest.Send) {
			send.Answer(0, nil)
			<-ctx.Done()
		}
		f.store.SetFault(func(_ context.Context, call relaytest.Call, done bool) error {
			if len(call.Renewed) > 1 {
				t.Errorf("rows %d are renewed, want the one without an answer", call.Renewed)
			}
			return nil
		})
		stop := f.start(acme)
		time.Sleep(45 * time.Second)
		if a, b := f.row(acme, 0), f.row(acme, 1); !a.Exported || a.ClaimedBy != "" || b.ClaimedBy == "" {
			t.Errorf("%v\n%v\nwant the first exported and the second claimed", a, b)
		}
		stop()
	})
}

// TestRenewalFails: a claim that can't be renewed is over when its lease is.
func TestRenewalFails(t *testing.T) {
	for name, lose := range map[string]func(f *fixture){
		"refused": func(f *fixture) {
			f.store.SetFault(func(_ context.Context, call relaytest.Call, _ bool) error {
				if call.Renewed != nil {
					return errors.New("away")
				}
				return nil
			})
		},
		"row taken over": func(f *fixture) { f.store.Seize(1, "python-worker", time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				acme := f.scope("acme")
				f.operation(acme, 1)
				f.unanswered(1)
				stop := f.start(acme)
				time.Sleep(time.Second)
				lose(f)
				time.Sleep(relay.DefaultLease + relay.DefaultPollInterval)
				if got := f.row(acme, 0); !got.Exported || got.Attempts < 2 {
					t.Errorf("%v, want it delivered by another claim", got)
				}
				stop()
			})
		})
	}
}

// TestUnansweredClaimsHoldNoWorker: one event without an answer does not keep others back
// for longer than the delivery time-out.
func TestUnansweredClaimsHoldNoWorker(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.config.Workers = 1
		f.make()
		acme, other := f.scope("acme"), f.scope("other")
		f.operation(acme, 1)
		f.unanswered(1)
		stop := f.start(acme, other)
		time.Sleep(time.Second)
		f.operation(other, 1)
		f.await("the other event is delivered", f.drained(other))
		if took, most := f.store.Now().Sub(f.row(other, 0).Created), relay.DefaultDeliveryTimeout+2*time.Second; took > most {
			t.Errorf("it was delivered after %s, want %s at most", took, most)
		}
		stop()
	})
}

// TestUnansweredClaimsAreBounded: events without answers don't pile up in memory.
func TestUnansweredClaimsAreBounded(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.config.Workers, f.config.BatchRows, f.config.BatchBytes = 2, 1, 100
		f.make()
		scopes := f.scopes(40)
		for _, scope := range scopes {
			f.operation(scope, 1)
		}
		f.sink.Handle = func(ctx context.Context, _ *relaytest.Send) { <-ctx.Done() }
		stop := f.start(scopes...)
		time.Sleep(58 * time.Second)
		if n, most := f.sink.Sends(), 2*4+1; n != most { // each takes a little more than an empty claim
			t.Errorf("%d events wait for an answer, want %d", n, most)
		}
		stop()
	})
}
