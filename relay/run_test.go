package relay_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
				var under atomic.Int64
				f.store.SetFault(func(ctx context.Context, call relaytest.Call, done bool) error {
					if call.IsClaim() {
						if !done && stopped.Load() {
							t.Error("a claim began after the context ended")
						}
						time.Sleep(time.Duration(rand.N(20)) * time.Millisecond)
					}
					return context.Cause(ctx) // a claim that was cut short leaves its rows claimed
				})
				f.sink.Handle = func(ctx context.Context, send *relaytest.Send) {
					under.Add(1)
					time.Sleep(time.Duration(rand.N(200)) * time.Millisecond)
					send.Rest(nil)
					under.Add(-1)
				}
				stop := f.start(scopes...)
				time.Sleep(after)
				synctest.Wait() // none is about to begin
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
