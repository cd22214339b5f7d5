package relay_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

// once exports one event, and checks the outcome and whether there is an error.
func (f *fixture) once(scope envelope.Scope, want relay.Outcome, wantErr bool) error {
	f.Helper()
	got, err := f.relay.ExportOnce(f.Context(), scope)
	if got != want || (err != nil) != wantErr {
		f.Errorf("export once ended as %s (%v), want %s with an error: %t", got, err, want, wantErr)
	}
	f.tally.check()
	return err
}

func TestOnceExports(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme, other := f.scope("acme"), f.scope("initech")
		operation := f.operation(acme, 3)
		f.operation(other, 1)
		f.once(f.scope("hooli"), relay.Empty, false)
		for n := range 3 {
			f.once(acme, relay.Exported, false)
			f.deliveredOnce(operation, n+1)
		}
		f.once(acme, relay.Empty, false)
		if got := f.row(other, 0); got.Attempts != 0 {
			t.Errorf("%v of another scope was touched", got)
		}
	})
}

func TestOnceFails(t *testing.T) {
	for _, class := range []relay.Class{relay.RowFault, relay.Environment, relay.Failed, relay.NotAttempted, relay.Unknown} {
		t.Run(class.String(), func(t *testing.T) {
			bubble(t, func(f *fixture) {
				acme := f.scope("acme")
				f.operation(acme, 2)
				f.sink.Handle = func(_ context.Context, send *relaytest.Send) { send.Rest(class.Wrap(errors.New("no"))) }
				err := f.once(acme, relay.SinkFailed, true)
				got := f.row(acme, 0)
				if class == relay.Unknown {
					if got.ClaimedBy == "" || got.LastError != "" {
						t.Errorf("%v, want nothing written", got)
					}
					return
				}
				if err.Error() != "no" || relay.ClassOf(err) != class {
					t.Errorf("error is %v of class %s, want the sink's", err, relay.ClassOf(err))
				}
				if got.ClaimedBy != "" || got.Parked != (class == relay.RowFault) {
					t.Errorf("%v, want the answer written", got)
				}
			})
		})
	}
}

// TestOnceRowFault: a row that is no event is told as the sink's failure, and the next
// call takes another operation's.
func TestOnceRowFault(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		f.operation(acme, 2)
		good := f.operation(acme, 1)
		f.store.Edit(func(r *relaytest.Stored) {
			if r.ID == 1 {
				r.Payload = []byte(`[]`)
			}
		})
		f.once(acme, relay.SinkFailed, true)
		f.once(acme, relay.Exported, false) // the row behind was in the way, and is pushed
		f.deliveredOnce(good, 1)
		f.once(acme, relay.Empty, false)
	})
}

func TestOnceNotReady(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		f.operation(acme, 1)
		f.sink.Unready = func(envelope.Scope) error { return errors.New("no topic") }
		if err := f.once(acme, relay.SinkFailed, true); !strings.Contains(err.Error(), "no topic") {
			t.Errorf("error is %q, want the sink's reason", err)
		}
		if got := f.row(acme, 0); got.Attempts != 0 {
			t.Errorf("%v, want it unclaimed", got)
		}
	})
}

func TestOnceNoAnswer(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		f.operation(acme, 1)
		returned := make(chan struct{})
		f.sink.Handle = func(ctx context.Context, _ *relaytest.Send) {
			<-ctx.Done()
			close(returned)
		}
		begin := time.Now()
		f.once(acme, relay.SinkFailed, true)
		if took := time.Since(begin); took != relay.DefaultLease {
			t.Errorf("it waited %s, want the lease", took)
		}
		<-returned // the sink was told that nobody waits any more
		if got := f.row(acme, 0); got.LastError != "" || got.Exported {
			t.Errorf("%v, want nothing written", got)
		}
	})
}

// TestOnceLost: the row was no longer the claim's when its event was delivered.
func TestOnceLost(t *testing.T) {
	for name, meanwhile := range map[string]func(*fixture, *relaytest.Stored){
		"taken over": func(f *fixture, r *relaytest.Stored) { r.ClaimedBy, r.Expires = "other", time.Now().Add(time.Hour) },
		"exported":   func(f *fixture, r *relaytest.Stored) { r.ClaimedBy, r.Expires, r.Exported = "", time.Time{}, true },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				acme := f.scope("acme")
				f.operation(acme, 1)
				f.sink.Handle = func(_ context.Context, send *relaytest.Send) {
					f.store.Edit(func(r *relaytest.Stored) { meanwhile(f, r) })
					send.Rest(nil)
				}
				f.once(acme, relay.ClaimLost, false)
				if got := f.row(acme, 0); !got.Exported {
					t.Errorf("%v, want it marked: it was delivered", got)
				}
			})
		})
	}
}

func TestOnceDatabaseErrors(t *testing.T) {
	away := errors.New("away")
	for name, fails := range map[string]func(relaytest.Call) bool{
		"claim":  relaytest.Call.IsClaim,
		"settle": func(c relaytest.Call) bool { return !c.IsClaim() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				acme := f.scope("acme")
				f.operation(acme, 1)
				f.store.SetFault(func(_ context.Context, c relaytest.Call, _ bool) error {
					if fails(c) {
						return away
					}
					return nil
				})
				if err := f.once(acme, relay.Empty, true); !errors.Is(err, away) || !strings.HasPrefix(err.Error(), name+": ") {
					t.Errorf("error is %q, want the database's with the step's name", err)
				}
			})
		})
	}
}

func TestOnceEnds(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		bubble(t, func(f *fixture) {
			acme := f.scope("acme")
			f.operation(acme, 1)
			ctx, cancel := context.WithCancel(f.Context())
			cancel()
			if outcome, err := f.relay.ExportOnce(ctx, acme); outcome != relay.Empty || !errors.Is(err, context.Canceled) {
				t.Errorf("ended as %s (%v), want the context's error", outcome, err)
			}
			f.tally.check()
		})
	})
	t.Run("without an answer", func(t *testing.T) {
		bubble(t, func(f *fixture) {
			acme := f.scope("acme")
			f.operation(acme, 1)
			f.sink.Handle = func(ctx context.Context, _ *relaytest.Send) { <-ctx.Done() }
			ctx, cancel := context.WithTimeout(f.Context(), time.Second)
			defer cancel()
			if outcome, err := f.relay.ExportOnce(ctx, acme); outcome != relay.Empty || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("ended as %s (%v), want the context's error", outcome, err)
			}
			if got := f.row(acme, 0); got.Exported || got.LastError != "" || got.ClaimedBy == "" {
				t.Errorf("%v, want it claimed and nothing written", got)
			}
			f.tally.check()
		})
	})
	// What was delivered is marked, also if nobody waits any more.
	t.Run("with an answer", func(t *testing.T) {
		bubble(t, func(f *fixture) {
			acme := f.scope("acme")
			f.operation(acme, 1)
			ctx, cancel := context.WithCancel(f.Context())
			f.sink.Handle = func(_ context.Context, send *relaytest.Send) {
				send.Rest(nil)
				cancel()
			}
			if outcome, err := f.relay.ExportOnce(ctx, acme); outcome != relay.Exported || err != nil {
				t.Errorf("ended as %s (%v), want exported", outcome, err)
			}
			if got := f.row(acme, 0); !got.Exported {
				t.Errorf("%v, want it exported", got)
			}
		})
	})
}

// TestOnceWhileRunning: calls and a running relay share the work of a scope.
func TestOnceWhileRunning(t *testing.T) {
	t.Parallel()
	store, sink, observer := &relaytest.Store{}, &relaytest.Sink{}, &tally{T: t}
	acme, err := envelope.Tenant("acme")
	if err != nil {
		t.Fatal(err)
	}
	const operations, versions = 60, 3
	for range operations {
		store.Add(namespace, acme, uuid.New(), versions)
	}
	r, err := relay.New(relay.Config{Namespace: namespace, BatchRows: 2}, store, sink, observer)
	if err != nil {
		t.Fatal(err)
	}
	r.SetScopes([]envelope.Scope{acme})
	var exported atomic.Int64
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for {
				outcome, err := r.ExportOnce(t.Context(), acme)
				if err != nil {
					t.Errorf("export once: %v", err)
				}
				if outcome != relay.Exported {
					return
				}
				exported.Add(1)
			}
		})
	}
	for range 20 { // Run ends and begins while they call
		short, end := context.WithTimeout(t.Context(), time.Millisecond)
		if err := r.Run(short); err != nil {
			t.Error(err)
		}
		end()
	}
	callers.Wait()
	observer.check()
	seen := map[string]int{}
	for _, e := range sink.Delivered() {
		if seen[e.ID()]++; seen[e.ID()] > 1 {
			t.Errorf("%s was delivered %d times", e.ID(), seen[e.ID()])
		}
	}
	if len(seen) == 0 || exported.Load() > int64(len(seen)) {
		t.Errorf("%d events were delivered, %d of them by calls", len(seen), exported.Load())
	}
}
