package relay_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

// longest is how long a worker may take for a step before the relay calls itself stuck.
const longest = 2*relay.DefaultLease + relay.DefaultGrace

// TestStuck: a worker that makes no step although nothing that it waits for may last so
// long.
func TestStuck(t *testing.T) {
	for name, hang := range map[string]func(*fixture, chan struct{}){
		"claim": func(f *fixture, free chan struct{}) {
			f.store.SetFault(func(_ context.Context, c relaytest.Call, _ bool) error {
				if c.IsClaim() {
					<-free
				}
				return nil
			})
		},
		"settlement": func(f *fixture, free chan struct{}) {
			f.store.SetFault(func(_ context.Context, c relaytest.Call, _ bool) error {
				if !c.IsClaim() {
					<-free
				}
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				acme := f.scope("acme")
				f.operation(acme, 1)
				free := make(chan struct{})
				hang(f, free)
				stop := f.start(acme)
				time.Sleep(longest)
				if stuck := f.relay.Health().Stuck; stuck != 0 {
					t.Errorf("stuck for %s, want not yet", stuck)
				}
				time.Sleep(time.Minute)
				if stuck := f.relay.Health().Stuck; stuck != longest+time.Minute {
					t.Errorf("stuck for %s, want %s", stuck, longest+time.Minute)
				}
				close(free)
				time.Sleep(time.Second)
				if stuck := f.relay.Health().Stuck; stuck != 0 {
					t.Errorf("stuck for %s after it went on", stuck)
				}
				stop()
			})
		})
	}
}

// TestNotStuck: whatever servers do, a relay that waits for them is not stuck.
func TestNotStuck(t *testing.T) {
	away := errors.New("away")
	for name, trouble := range map[string]func(*fixture){
		"idle": func(*fixture) {},
		"database away": func(f *fixture) {
			f.store.SetFault(func(context.Context, relaytest.Call, bool) error { return away })
		},
		"database slow and away": func(f *fixture) {
			f.store.SetFault(func(ctx context.Context, _ relaytest.Call, _ bool) error {
				pause(ctx, 10*time.Second)
				return away
			})
		},
		"settlements fail": func(f *fixture) {
			f.store.SetFault(func(ctx context.Context, c relaytest.Call, _ bool) error {
				if c.IsClaim() {
					return nil
				}
				pause(ctx, 10*time.Second)
				return away
			})
		},
		"sink never answers": func(f *fixture) {
			f.sink.Handle = func(ctx context.Context, _ *relaytest.Send) { <-ctx.Done() }
		},
		"sink answers late": func(f *fixture) {
			f.sink.Handle = func(ctx context.Context, s *relaytest.Send) {
				pause(ctx, relay.DefaultLease+time.Second)
				s.Rest(away)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				f.config.PollInterval = 10 * time.Second
				f.make()
				acme := f.scope("acme")
				if stuck := f.relay.Health().Stuck; stuck != 0 {
					t.Errorf("stuck for %s before it ran", stuck)
				}
				for range 10 {
					f.operation(acme, 3)
				}
				trouble(f)
				stop := f.start(acme)
				for range 60 {
					time.Sleep(time.Minute)
					if stuck := f.relay.Health().Stuck; stuck != 0 {
						t.Fatalf("stuck for %s", stuck)
					}
				}
				stop()
				time.Sleep(time.Hour)
				if stuck := f.relay.Health().Stuck; stuck != 0 {
					t.Errorf("stuck for %s although it has ended", stuck)
				}
			})
		})
	}
}
