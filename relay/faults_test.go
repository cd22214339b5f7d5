package relay_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

// TestSettleErrors: an answer is written when the database takes it, and is the same
// until then.
func TestSettleErrors(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		bad, good := f.operation(acme, 2), f.operation(acme, 2)
		away := errors.New("away")
		begin := time.Now()
		var mu sync.Mutex
		var tries [][]relay.Verdict
		f.store.SetFault(func(_ context.Context, call relaytest.Call, done bool) error {
			if done || time.Since(begin) < time.Millisecond && call.IsClaim() {
				return nil
			}
			if !call.IsClaim() {
				mu.Lock()
				tries = append(tries, slices.Clone(call.Verdicts))
				mu.Unlock()
			}
			if time.Since(begin) < 15*time.Second {
				return away
			}
			return nil
		})
		f.sink.Handle = func(_ context.Context, send *relaytest.Send) {
			if send.N == 1 {
				send.Answer(0, errors.New("no"))
			}
			send.Rest(nil)
		}
		stop := f.start(acme)
		f.await("all are exported", f.drained(acme))
		stop()
		f.deliveredOnce(bad, 2)
		f.deliveredOnce(good, 2)
		if len(tries) < 5 || len(tries) > 20 {
			t.Fatalf("%d settlements in an outage of 15 s, want some with growing waits between", len(tries))
		}
		for i, verdicts := range tries[:5] {
			if !reflect.DeepEqual(verdicts, tries[0]) {
				t.Errorf("try %d wrote %v, want what the first wrote: %v", i, verdicts, tries[0])
			}
		}
		for i := range 4 {
			if got, want := f.row(acme, i).Attempts, []int{2, 1, 1, 1}[i]; got != want {
				t.Errorf("row %d has %d attempts, want %d", i, got, want)
			}
		}
	})
}

// TestSettleAnswerLost: a settlement was written but its answer lost. Writing it again
// changes nothing.
func TestSettleAnswerLost(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		operation := f.operation(acme, 3)
		var lost atomic.Int64
		f.store.SetFault(func(_ context.Context, call relaytest.Call, done bool) error {
			if done && !call.IsClaim() && lost.Add(1) <= 3 {
				return errors.New("connection lost")
			}
			return nil
		})
		stop := f.start(acme)
		f.await("all are exported", f.drained(acme))
		time.Sleep(time.Minute)
		stop()
		f.deliveredOnce(operation, 3)
	})
}

// TestClaimAnswerLost: rows of a claim whose answer was lost come back with the lease.
func TestClaimAnswerLost(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		operation := f.operation(acme, 3)
		begin := time.Now()
		var claims atomic.Int64
		f.store.SetFault(func(_ context.Context, call relaytest.Call, done bool) error {
			if done && claims.Add(1) == 1 {
				return errors.New("connection lost")
			}
			return nil
		})
		stop := f.start(acme)
		f.await("all are exported", f.drained(acme))
		stop()
		f.deliveredOnce(operation, 3)
		if took := time.Since(begin); took < relay.DefaultLease || took > relay.DefaultLease+time.Second {
			t.Errorf("it took %s, want the lease of %s", took, relay.DefaultLease)
		}
		if got := f.row(acme, 0).Attempts; got != 2 {
			t.Errorf("row has %d attempts, want 2", got)
		}
		if n, err := f.tally.trouble(relay.ForeignClaims); n != 0 {
			t.Errorf("the relay's own claim was taken for another exporter's: %v", err)
		}
	})
}

// TestSlowClaim: nothing is sent unless enough of the lease is left.
func TestSlowClaim(t *testing.T) {
	const enough = relay.DefaultLease - relay.DefaultDeliveryTimeout - 3*time.Second
	for _, c := range []struct {
		took time.Duration
		send bool
	}{
		{enough, true},
		{enough + time.Millisecond, false},
		{relay.DefaultLease - time.Second, false},
		{2 * relay.DefaultLease, false},
	} {
		t.Run(c.took.String(), func(t *testing.T) {
			bubble(t, func(f *fixture) {
				acme := f.scope("acme")
				operation := f.operation(acme, 2)
				var claims atomic.Int64
				var givenBack atomic.Bool
				f.store.SetFault(func(_ context.Context, call relaytest.Call, done bool) error {
					if call.IsClaim() && done && claims.Add(1) == 1 {
						time.Sleep(c.took)
					}
					if len(call.Verdicts) > 0 && call.Verdicts[0].Refund {
						givenBack.Store(true)
					}
					return nil
				})
				stop := f.start(acme)
				f.await("all are exported", f.drained(acme))
				if !c.send { // another worker may have drained the scope before the slow claim ended
					f.await("what was not sent is given back", givenBack.Load)
				}
				stop()
				if c.send && givenBack.Load() {
					t.Errorf("after a claim that took %s something was given back", c.took)
				}
				f.deliveredOnce(operation, 2)
				// Beyond the lease another worker may have taken the rows over, which counts.
				if got := f.row(acme, 0).Attempts; got != 1 && c.took < relay.DefaultLease {
					t.Errorf("%d attempts are counted, want 1: what was not sent is given back", got)
				}
			})
		})
	}
}

// unreadable is a store that can't read the payload of a row the first few times.
type unreadable struct {
	*relaytest.Store
	row   int64
	times atomic.Int64
}

func (u *unreadable) Claim(ctx context.Context, req relay.Request) (relay.Claim, error) {
	claim, err := u.Store.Claim(ctx, req)
	for i := range claim.Rows {
		if row := &claim.Rows[i]; row.ID == u.row && u.times.Add(-1) >= 0 {
			row.Payload, row.Err = nil, errors.New("it takes too long")
		}
	}
	return claim, err
}

// TestUnreadableRow: a row whose payload can't be read holds up its own operation and nobody else's, says why, and is
// tried again after growing waits.
func TestUnreadableRow(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		bad, good := f.operation(acme, 2), f.operation(acme, 2)
		u := &unreadable{Store: f.store, row: 1}
		u.times.Store(4)
		r, err := relay.New(f.config, u, f.sink, nil)
		if err != nil {
			f.Fatal(err)
		}
		f.relay = r
		stop := f.start(acme)
		time.Sleep(time.Second)
		f.deliveredOnce(good, 2)
		if got := f.row(acme, 0); got.LastError != "it takes too long" || got.ClaimedBy != "" || got.Parked {
			t.Errorf("%v, want it free, with the reason", got)
		}
		begin := time.Now()
		f.await("all are exported", f.drained(acme))
		if took := time.Since(begin); took < 30*time.Second || took > 80*time.Second {
			t.Errorf("done after %s, want waits of 5, 10, 20 and 40 s, or half as long", took)
		}
		stop()
		f.deliveredOnce(bad, 2)
	})
}
