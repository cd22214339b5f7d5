package relay_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

// TestIdle: an idle relay asks for each scope once in a poll interval, whatever number
// of workers it has; for many scopes it asks at once. One without scopes asks for nothing.
func TestIdle(t *testing.T) {
	for _, workers := range []int{1, 8} {
		for _, c := range []struct{ scopes, claims, looks int }{{0, 0, 0}, {1, 1, 0}, {3, 3, 0}, {5, 0, 1}, {200, 0, 1}, {1500, 0, 2}} {
			t.Run(fmt.Sprintf("%d workers, %d scopes", workers, c.scopes), func(t *testing.T) {
				bubble(t, func(f *fixture) {
					f.config.Workers = workers
					f.make()
					var looks atomic.Int64
					f.store.SetFault(func(_ context.Context, call relaytest.Call, done bool) error {
						if call.Looked != nil && done {
							looks.Add(1)
						}
						return nil
					})
					stop := f.start(f.scopes(c.scopes)...)
					const span = time.Minute
					time.Sleep(span)
					polls := int(span / relay.DefaultPollInterval)
					if n := f.claims(); n > c.claims*(polls+10) || n < c.claims*polls {
						t.Errorf("%d claims in %s, want about %d", n, span, c.claims*polls)
					}
					if n := int(looks.Load()); n > c.looks*(polls+10) || n < c.looks*polls {
						t.Errorf("%d looks in %s, want about %d", n, span, c.looks*polls)
					}
					stop()
				})
			})
		}
	}
}

// TestManyScopes: among very many idle scopes, events of a few get through soon.
func TestManyScopes(t *testing.T) {
	bubble(t, func(f *fixture) {
		scopes := f.scopes(2500)
		stop := f.start(scopes...)
		time.Sleep(5 * time.Second)
		begin := time.Now()
		some := []envelope.Scope{scopes[0], scopes[999], scopes[1000], scopes[2499]}
		for _, scope := range some {
			f.operation(scope, 3)
		}
		f.await("they are exported", f.drained(some...))
		if took := time.Since(begin); took > relay.DefaultPollInterval+10*time.Millisecond {
			t.Errorf("it took %s, want %s at most", took, relay.DefaultPollInterval)
		}
		stop()
	})
}

// TestLookFails: if scopes can't be looked at together, each is claimed from all the same.
func TestLookFails(t *testing.T) {
	bubble(t, func(f *fixture) {
		scopes := f.scopes(50)
		for _, scope := range scopes[:10] {
			f.operation(scope, 2)
		}
		f.store.SetFault(func(_ context.Context, call relaytest.Call, _ bool) error {
			if call.Looked != nil {
				return errors.New("one of them can't be looked at")
			}
			return nil
		})
		stop := f.start(scopes...)
		f.await("all are exported", f.drained(scopes...))
		stop()
	})
}

// TestNewRowsAreFoundSoon: a row that comes to an idle scope waits a poll interval at most.
func TestNewRowsAreFoundSoon(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		stop := f.start(acme)
		time.Sleep(time.Minute)
		f.operation(acme, 1)
		begin := time.Now()
		f.await("it is exported", f.drained(acme))
		if took := time.Since(begin); took > relay.DefaultPollInterval+10*time.Millisecond {
			t.Errorf("it took %s, want %s at most", took, relay.DefaultPollInterval)
		}
		stop()
	})
}

// TestSinkNotReady: nothing is claimed for a scope that can't be sent; it is asked again
// once a second, and others go on.
func TestSinkNotReady(t *testing.T) {
	bubble(t, func(f *fixture) {
		bad, good := f.scope("bad"), f.scope("good")
		f.operation(bad, 1)
		f.operation(good, 1)
		var asked atomic.Int64
		var ready atomic.Bool
		f.sink.Unready = func(scope envelope.Scope) error {
			if scope == good || ready.Load() {
				return nil
			}
			asked.Add(1)
			return errors.New("no topic")
		}
		stop := f.start(bad, good)
		f.await("the good scope is drained", f.drained(good))
		time.Sleep(time.Minute)
		if got := f.row(bad, 0); got.Attempts != 0 {
			t.Errorf("%v, want it unclaimed", got)
		}
		if n := asked.Load(); n < 59 || n > 62 {
			t.Errorf("the sink was asked %d times in a minute, want once a second", n)
		}
		if n, err := f.tally.trouble(relay.SinkTrouble); n < 59 || err.Error() != "no topic" {
			t.Errorf("sink trouble was told %d times (%v)", n, err)
		}
		ready.Store(true)
		begin := time.Now()
		f.await("the bad scope is drained", f.drained(bad))
		if took := time.Since(begin); took > 1100*time.Millisecond {
			t.Errorf("it took %s after the sink was ready, want a second at most", took)
		}
		stop()
	})
}

// TestDatabaseAway: while the database fails it is asked seldom, whatever number of
// workers and scopes, and when it is back all goes on within the longest wait.
func TestDatabaseAway(t *testing.T) {
	for _, workers := range []int{1, 8} {
		t.Run(fmt.Sprintf("%d workers", workers), func(t *testing.T) {
			bubble(t, func(f *fixture) {
				f.config.Workers = workers
				f.make()
				scopes := f.scopes(100)
				for _, scope := range scopes {
					f.operation(scope, 1)
				}
				var attempts atomic.Int64
				var down atomic.Bool
				down.Store(true)
				f.store.SetFault(func(_ context.Context, _ relaytest.Call, done bool) error {
					if done || !down.Load() {
						return nil
					}
					attempts.Add(1)
					return errors.New("away")
				})
				stop := f.start(scopes...)
				time.Sleep(5 * time.Minute)
				// 250 ms, doubled up to 10 s, and 3/4 of that on average.
				if n := attempts.Load() - int64(workers); n > 60 || n < 30 {
					t.Errorf("%d workers made %d attempts in 5 minutes, want about 45", workers, n)
				}
				if n, err := f.tally.trouble(relay.DatabaseTrouble); n < 30 || f.relay.Health().Database == nil {
					t.Errorf("database trouble was told %d times (%v); health says %v", n, err, f.relay.Health().Database)
				}
				down.Store(false)
				begin := time.Now()
				f.await("all are exported", f.drained(scopes...))
				if took := time.Since(begin); took > 11*time.Second {
					t.Errorf("it took %s after the database was back, want 10 s at most", took)
				}
				if h := f.relay.Health(); h.Database != nil || time.Since(h.DatabaseSeen) > time.Second {
					t.Errorf("health is %+v, want the database seen just now", h)
				}
				stop()
			})
		})
	}
}

// TestFailedSettlementsAreSeldom: in an outage each claim in flight asks for itself, with
// growing waits.
func TestFailedSettlementsAreSeldom(t *testing.T) {
	bubble(t, func(f *fixture) {
		scopes := f.scopes(relay.DefaultWorkers)
		for _, scope := range scopes {
			f.operation(scope, 1)
		}
		var down atomic.Bool
		var attempts atomic.Int64
		f.store.SetFault(func(_ context.Context, call relaytest.Call, done bool) error {
			if !down.Load() || done {
				return nil
			}
			attempts.Add(1)
			return errors.New("away")
		})
		f.sink.Handle = func(_ context.Context, send *relaytest.Send) {
			if send.N <= relay.DefaultWorkers {
				time.Sleep(5 * time.Second)
				down.Store(true)
			}
			send.Rest(nil)
		}
		stop := f.start(scopes...)
		time.Sleep(5 * time.Minute)
		if n := attempts.Load(); n > 60*relay.DefaultWorkers {
			t.Errorf("%d attempts in 5 minutes with %d claims in flight, want about 45 for each", n, relay.DefaultWorkers)
		}
		down.Store(false)
		begin := time.Now()
		f.await("all are exported", f.drained(scopes...))
		if took := time.Since(begin); took > 11*time.Second {
			t.Errorf("it took %s after the database was back, want 10 s at most", took)
		}
		stop()
	})
}

// TestOneScopeDoesNotStarveOthers: 50 scopes with an event each, beside one with endless
// work.
func TestOneScopeDoesNotStarveOthers(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.config.BatchRows = 2
		f.make()
		busy := f.scope("busy")
		for range 300 {
			f.operation(busy, 1)
		}
		few := f.scopes(50)
		f.sink.Handle = func(_ context.Context, send *relaytest.Send) {
			time.Sleep(100 * time.Millisecond)
			send.Rest(nil)
		}
		stop := f.start(append(few, busy)...)
		time.Sleep(time.Second)
		for _, scope := range few {
			f.operation(scope, 1)
		}
		begin := time.Now()
		f.await("the small scopes are drained", f.drained(few...))
		// 50 sends of 100 ms among 4 workers.
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("it took %s, want what a round takes", took)
		}
		if f.drained(busy)() {
			t.Error("the busy scope has no work left, so nothing was shown")
		}
		stop()
	})
}
