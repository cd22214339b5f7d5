package relay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

// slowest writes an event of a scope every second, and tells how long the slowest took to be delivered.
func (f *fixture) slowest(scope envelope.Scope, events int) (most time.Duration) {
	f.Helper()
	for range events {
		id, began := f.operation(scope, 1), time.Now()
		f.await("an event of "+scope.String(), func() bool { return len(f.versions(id)) > 0 })
		most = max(most, time.Since(began))
		time.Sleep(time.Second)
	}
	return most
}

// refuseMark has the database refuse what is to be written of some rows, after a time, if one is among them.
func (f *fixture) refuseMark(row int64, after time.Duration) {
	f.store.SetFault(func(ctx context.Context, call relaytest.Call, done bool) error {
		if !done && slices.ContainsFunc(call.Verdicts, func(v relay.Verdict) bool { return v.Row.ID == row }) {
			pause(ctx, after)
			return relay.RowFault.Wrap(fmt.Errorf("row %d is refused", row))
		}
		return nil
	})
}

// TestSlowClaimsHoldUpTheirTenantsOnly: the database does not make the claims of some tenants in time, whatever their number.
// Another tenant's events wait for no longer than one such claim takes.
func TestSlowClaimsHoldUpTheirTenantsOnly(t *testing.T) {
	for _, c := range []struct {
		workers, bad int
		topics       string
	}{{1, 1, "own"}, {2, 2, "own"}, {4, 4, "own"}, {4, 8, "own"}, {4, 20, "own"}, {1, 1, "one"}, {4, 4, "one"}, {4, 20, "one"}} {
		t.Run(fmt.Sprintf("%d workers, %d tenants, %s topic", c.workers, c.bad, c.topics), func(t *testing.T) {
			bubble(t, func(f *fixture) {
				f.config.Workers = c.workers
				if f.make(); c.topics == "one" { // then scopes that have little are claimed of together
					f.makeFor(oneTopic{f.sink})
				}
				scopes := f.scopes(c.bad + 1)
				good := scopes[c.bad]
				f.store.SetFault(func(ctx context.Context, call relaytest.Call, done bool) error {
					if call.IsClaim() && call.Scope != good && !done {
						pause(ctx, 3*time.Second)
						return relay.RowFault.Wrap(errors.New("canceling statement due to statement timeout"))
					}
					return nil
				})
				for _, scope := range scopes[:c.bad] {
					f.operation(scope, 10)
				}
				stop := f.start(scopes...)
				time.Sleep(30 * time.Second)
				if most := f.slowest(good, 60); most > 3500*time.Millisecond {
					t.Errorf("an event took %s", most)
				}
				stop()
			})
		})
	}
}

// TestManyTenantsWhoseMarksFail: what is delivered of very many tenants can't be marked, and each has more than may be kept in
// memory. Another tenant of the same topic goes on.
func TestManyTenantsWhoseMarksFail(t *testing.T) {
	refused := relay.RowFault.Wrap(errors.New("refused"))
	for name, c := range map[string]struct {
		err  error
		slow time.Duration
	}{
		"refused": {refused, 0}, "refused slowly": {refused, 2 * time.Second},
		"failing": {errors.New("disk full"), 0}, "failing slowly": {errors.New("no answer"), 9 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				const bad = 25
				scopes := f.scopes(bad + 1)
				good := scopes[bad]
				f.store.SetFault(func(ctx context.Context, call relaytest.Call, done bool) error {
					if len(call.Verdicts) > 0 && call.Scope != good && !done {
						pause(ctx, c.slow)
						return c.err
					}
					return nil
				})
				for _, scope := range scopes[:bad] {
					for range 80 {
						f.operation(scope, 1)
					}
				}
				f.config.BatchRows, f.config.BatchBytes = 100, 64<<10
				f.store.Edit(func(r *relaytest.Stored) {
					r.Payload = append(r.Payload[:len(r.Payload)-1:len(r.Payload)-1], fmt.Sprintf(`, "more": %q}`, strings.Repeat("x", 1<<10))...)
				})
				f.makeFor(oneTopic{f.sink})
				stop := f.start(scopes...)
				time.Sleep(30 * time.Second)
				if most := f.slowest(good, 20); most > 5*time.Second {
					t.Errorf("an event took %s", most)
				}
				stop()
			})
		})
	}
}

// TestRefusedRowBesideLateAnswers: the mark of one row is refused. Those whose events are answered later are marked all the same,
// and soon.
func TestRefusedRowBesideLateAnswers(t *testing.T) {
	bubble(t, func(f *fixture) {
		const refused = 7
		acme := f.scope("acme")
		for range 50 {
			f.operation(acme, 1)
		}
		f.refuseMark(refused, 0)
		f.sink.Handle = func(_ context.Context, s *relaytest.Send) {
			for i := range s.Events {
				if i == len(s.Events)/2 {
					time.Sleep(1500 * time.Millisecond)
				}
				s.Answer(i, nil)
			}
		}
		stop := f.start(acme)
		time.Sleep(5 * time.Second)
		for _, r := range f.store.Rows(acme) {
			if !r.Exported && r.ID != refused {
				t.Errorf("not marked: %v", r)
			}
		}
		stop()
	})
}

// TestLockedRowHoldsUpItself: somebody holds a lock on one row of a full claim. The others are marked before their lease ends, and
// later events of the tenant sent.
func TestLockedRowHoldsUpItself(t *testing.T) {
	bubble(t, func(f *fixture) {
		const locked = 700
		acme := f.scope("acme")
		for range 1000 {
			f.operation(acme, 1)
		}
		f.refuseMark(locked, 2*time.Second)
		stop := f.start(acme)
		time.Sleep(time.Second)
		later, began := f.operation(acme, 1), time.Now()
		f.await("a later event", func() bool { return len(f.versions(later)) > 0 })
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("a later event took %s", took)
		}
		f.await("all others are marked", func() bool {
			return !slices.ContainsFunc(f.store.Rows(acme), func(r relaytest.Stored) bool { return !r.Exported && r.ID != locked })
		})
		if took := time.Since(began); took > relay.DefaultLease/2 {
			t.Errorf("the others were marked after %s", took)
		}
		stop()
	})
}

// TestLostCallsAreNoRefusals: the way to the database is cut, so that calls end without an answer after ten seconds each. That
// says nothing of their scopes: when it is back they are served soon.
func TestLostCallsAreNoRefusals(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		var cut atomic.Bool
		f.store.SetFault(func(ctx context.Context, _ relaytest.Call, done bool) error {
			if cut.Load() && !done {
				pause(ctx, 10*time.Second)
				return errors.New("no answer from the database")
			}
			return nil
		})
		stop := f.start(acme)
		f.operation(acme, 1)
		f.await("the first event is delivered", f.drained(acme))
		cut.Store(true)
		f.operation(acme, 1)
		time.Sleep(time.Minute)
		cut.Store(false)
		began := time.Now()
		f.await("the second event is delivered", f.drained(acme))
		if took := time.Since(began); took > 21*time.Second { // a call that is under way, and the longest wait
			t.Errorf("it took %s", took)
		}
		stop()
	})
}
