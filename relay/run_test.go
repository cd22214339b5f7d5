package relay_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

// TestStopsUnderLoad: after its context ended a relay claims nothing more, finishes what
// is in flight, and leaves nothing claimed.
func TestStopsUnderLoad(t *testing.T) {
	for _, after := range []time.Duration{0, time.Millisecond, 137 * time.Millisecond, time.Second, 3210 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			bubble(t, func(f *fixture) {
				f.config.BatchRows = 10
				f.make()
				scopes := []envelope.Scope{f.scope("acme"), f.scope("initech"), envelope.NonTenant()}
				for _, scope := range scopes {
					for range 200 {
						f.operation(scope, 2)
					}
				}
				var stopped atomic.Bool
				var under, claimed atomic.Int64
				f.store.SetFault(func(ctx context.Context, call relaytest.Call, done bool) error {
					if call.IsClaim() && !done {
						claimed.Add(1)
						if stopped.Load() {
							t.Error("a claim began after the context ended")
						}
						time.Sleep(time.Duration(rand.N(20)) * time.Millisecond)
					}
					return context.Cause(ctx) // a claim that was cut short would leave its rows claimed
				})
				f.sink.Handle = func(ctx context.Context, send *relaytest.Send) {
					under.Add(1)
					time.Sleep(time.Duration(rand.N(200)) * time.Millisecond)
					send.Rest(nil)
					under.Add(-1)
				}
				stop := f.start(scopes...)
				time.Sleep(after)
				stopped.Store(true)
				begin := time.Now()
				stop()
				if took := time.Since(begin); took > 2*time.Second {
					t.Errorf("it took %s to finish what was in flight, want what a claim and a send take", took)
				}
				if n := under.Load(); n != 0 {
					t.Errorf("%d sends go on after Run returned", n)
				}
				for _, scope := range scopes {
					for _, row := range f.store.Rows(scope) {
						if row.ClaimedBy != "" {
							t.Fatalf("left claimed: %v", row)
						}
					}
				}
			})
		})
	}
}

// TestStopsInTime: whatever does not answer, Run returns within the grace period.
func TestStopsInTime(t *testing.T) {
	block := func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for name, breakIt := range map[string]func(f *fixture){
		"the sink never answers": func(f *fixture) {
			f.sink.Handle = func(ctx context.Context, _ *relaytest.Send) { _ = block(ctx) }
		},
		"the sink returns late": func(f *fixture) {
			var inside atomic.Int64
			f.sink.Handle = func(ctx context.Context, send *relaytest.Send) {
				inside.Add(1)
				defer inside.Add(-1)
				send.Rest(nil)
				time.Sleep(2 * time.Second)
			}
			f.Cleanup(func() {
				if n := inside.Load(); n != 0 {
					f.Errorf("%d sends go on although Run has returned", n)
				}
			})
		},
		"the sink is not ready": func(f *fixture) {
			f.sink.Unready = func(envelope.Scope) error { return errors.New("away") }
		},
		"claims hang": func(f *fixture) {
			f.store.SetFault(func(ctx context.Context, call relaytest.Call, _ bool) error { return block(ctx) })
		},
		"settlements hang": func(f *fixture) {
			f.store.SetFault(func(ctx context.Context, call relaytest.Call, _ bool) error {
				if call.IsClaim() {
					return nil
				}
				return block(ctx)
			})
		},
		"claims fail": func(f *fixture) {
			f.store.SetFault(func(context.Context, relaytest.Call, bool) error { return errors.New("away") })
		},
		"settlements fail": func(f *fixture) {
			f.store.SetFault(func(_ context.Context, call relaytest.Call, _ bool) error {
				if call.IsClaim() {
					return nil
				}
				return errors.New("away")
			})
		},
	} {
		for _, after := range []time.Duration{0, time.Second, 25 * time.Second, 5 * time.Minute} {
			t.Run(name+" for "+after.String(), func(t *testing.T) {
				bubble(t, func(f *fixture) {
					acme := f.scope("acme")
					for range 10 {
						f.operation(acme, 2)
					}
					breakIt(f)
					stop := f.start(acme)
					time.Sleep(after)
					stop() // checks how long it takes
				})
			})
		}
	}
}

// TestAnswersDuringStop: what is answered while the relay ends is still written, also if
// another answer never comes.
func TestAnswersDuringStop(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		f.operation(acme, 1)
		f.operation(acme, 1)
		f.sink.Handle = func(ctx context.Context, send *relaytest.Send) {
			time.Sleep(15 * time.Second)
			send.Answer(0, nil)
			<-ctx.Done()
		}
		stop := f.start(acme)
		time.Sleep(time.Second)
		stop()
		if got := f.row(acme, 0); !got.Exported {
			t.Errorf("%v, want it exported", got)
		}
		if got := f.row(acme, 1); got.Exported || got.ClaimedBy == "" {
			t.Errorf("%v, want it claimed until its lease ends", got)
		}
	})
}

// TestRunsAgain: a relay may run again after it has ended, wherever it was when it did.
func TestRunsAgain(t *testing.T) {
	bubble(t, func(f *fixture) {
		scopes := []envelope.Scope{f.scope("acme"), f.scope("initech"), envelope.NonTenant()}
		var down atomic.Bool
		f.store.SetFault(func(context.Context, relaytest.Call, bool) error {
			if down.Load() {
				return errors.New("away")
			}
			return nil
		})
		for run := range 20 {
			var operations []uuid.UUID
			for _, scope := range scopes {
				operations = append(operations, f.operation(scope, 2))
			}
			down.Store(true) // it ends while workers stand before the database
			stop := f.start(scopes...)
			time.Sleep(time.Duration(run) * 40 * time.Millisecond)
			stop()
			down.Store(false)
			stop = f.start(scopes...)
			begin := time.Now()
			f.await("all are exported", f.drained(scopes...))
			if took := time.Since(begin); took > 15*time.Second {
				t.Errorf("run %d took %s", run, took)
			}
			stop()
			for _, operation := range operations {
				f.deliveredOnce(operation, 2)
			}
		}
	})
}

// TestSetScopesWhileRunning: new scopes are served at once; one that is taken out gets
// no new claims, and what is in flight is finished.
func TestSetScopesWhileRunning(t *testing.T) {
	bubble(t, func(f *fixture) {
		a, b := f.scope("a"), f.scope("b")
		first := f.operation(a, 2)
		letGo := make(chan struct{})
		f.sink.Handle = func(_ context.Context, send *relaytest.Send) {
			if send.N == 1 {
				<-letGo
			}
			send.Rest(nil)
		}
		stop := f.start(a)
		f.await("the first send", func() bool { return f.sink.Sends() == 1 })
		f.relay.SetScopes([]envelope.Scope{b})
		f.operation(a, 1)
		second := f.operation(b, 2)
		f.await("the new scope is drained", f.drained(b))
		if n := f.relay.Health().Scopes; n != 1 {
			t.Errorf("%d scopes are served, want 1", n)
		}
		close(letGo)
		f.await("what was in flight is exported", func() bool { return f.row(a, 1).Exported })
		f.deliveredOnce(first, 2)
		f.deliveredOnce(second, 2)
		time.Sleep(time.Minute)
		if got := f.row(a, 2); got.Attempts != 0 {
			t.Errorf("%v, want it unclaimed: its scope was taken out", got)
		}
		f.relay.SetScopes([]envelope.Scope{a, b})
		f.await("the scope is back", f.drained(a))
		stop()
	})
}

// TestIdle: an idle relay asks for each scope once in a poll interval, whatever number
// of workers it has, and a relay without scopes asks for nothing.
func TestIdle(t *testing.T) {
	for _, workers := range []int{1, 8} {
		for _, scopes := range []int{0, 1, 5} {
			t.Run(fmt.Sprintf("%d workers, %d scopes", workers, scopes), func(t *testing.T) {
				bubble(t, func(f *fixture) {
					f.config.Workers = workers
					f.make()
					stop := f.start(f.scopes(scopes)...)
					const span = 10 * time.Minute
					time.Sleep(span)
					most := scopes * (int(span/relay.DefaultPollInterval) + 5)
					if n := f.claims(); n > most || n < most-10*scopes {
						t.Errorf("%d claims in %s, want about %d", n, span, most)
					}
					stop()
				})
			})
		}
	}
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

// TestStartStopStress runs many relays for moments of real time on one outbox.
func TestStartStopStress(t *testing.T) {
	t.Parallel()
	store, sink := &relaytest.Store{}, &relaytest.Sink{}
	acme, err := envelope.Tenant("acme")
	if err != nil {
		t.Fatal(err)
	}
	var operations []uuid.UUID
	for range 50 {
		operations = append(operations, uuid.New())
		store.Add(namespace, acme, operations[len(operations)-1], 3)
	}
	observer := &tally{T: t}
	var all sync.WaitGroup
	for worker := range 10 {
		all.Go(func() {
			r, err := relay.New(relay.Config{Namespace: namespace, BatchRows: 1}, store, sink, observer)
			if err != nil {
				t.Error(err)
				return
			}
			for round := range 10 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(worker+round)*100*time.Microsecond)
				r.SetScopes([]envelope.Scope{acme})
				if err := r.Run(ctx); err != nil {
					t.Error(err)
				}
				cancel()
				_ = r.Health()
			}
		})
	}
	all.Wait()
	observer.check()
	for _, row := range store.Rows(acme) {
		if row.ClaimedBy != "" {
			t.Fatalf("left claimed: %v", row)
		}
	}
	seen := map[string]bool{}
	versions := map[uuid.UUID][]int64{}
	for _, e := range sink.Delivered() {
		if seen[e.ID()] {
			t.Errorf("%s was delivered twice", e.ID())
		}
		seen[e.ID()] = true
		versions[e.OperationID] = append(versions[e.OperationID], e.StateVersion)
	}
	for operation, list := range versions {
		if !slices.IsSorted(list) {
			t.Errorf("operation %s was delivered as %v", operation, list)
		}
	}
}
