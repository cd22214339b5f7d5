package relay_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

// reincarnate runs relays one after the other until done, and counts how many died.
func (f *fixture) reincarnate(scopes []envelope.Scope, deadly func([]envelope.Event) bool, done func() bool) (deaths int) {
	f.Helper()
	for begin := time.Now(); !done(); {
		if time.Since(begin) > time.Hour {
			f.Fatalf("not done after an hour and %d deaths", deaths)
		}
		ctx, cancel := context.WithCancel(f.Context())
		m := &mortal{Store: f.store, Sink: f.sink, deadly: deadly, died: cancel}
		r, err := relay.New(f.config, m, m, nil)
		if err != nil {
			f.Fatal(err)
		}
		r.SetScopes(scopes)
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		for ctx.Err() == nil && !done() {
			pause(ctx, 100*time.Millisecond)
		}
		cancel()
		if err := <-ended; err != nil {
			f.Errorf("run: %v", err)
		}
		if m.dead.Load() {
			deaths++
		}
	}
	return deaths
}

// TestDeadlyRow: one event whose sending ends the process is parked in the end, all
// others are delivered, and the process does not end more often than it takes.
func TestDeadlyRow(t *testing.T) {
	bubble(t, func(f *fixture) {
		scopes := f.scopes(2)
		for range 25 {
			f.operation(scopes[0], 2)
		}
		killer := f.operation(scopes[1], 2)
		for range 25 {
			f.operation(scopes[1], 1)
		}
		deadly := func(events []envelope.Event) bool {
			return slices.ContainsFunc(events, func(e envelope.Event) bool { return e.OperationID == killer })
		}
		var parked relaytest.Stored
		deaths := f.reincarnate(scopes, deadly, func() bool {
			left := 0
			for _, scope := range scopes {
				for _, r := range f.store.Rows(scope) {
					switch {
					case r.Operation == killer && r.Version == 1:
						parked = r
					case r.Operation != killer && !r.Exported:
						left++
					}
				}
			}
			return left == 0 && parked.Parked
		})
		if deaths != 6 { // three times among fewer and fewer others, and three times alone
			t.Errorf("%d processes ended, want 6", deaths)
		}
		if !strings.Contains(parked.LastError, "while it held this event alone") || parked.ClaimedBy != "" {
			t.Errorf("%v, want it parked for that", parked)
		}
		for _, scope := range scopes {
			for _, r := range f.store.Rows(scope) {
				if r.Parked != (r.ID == parked.ID) {
					t.Errorf("%v, want only the deadly one parked", r)
				}
			}
		}
	})
}

// TestInnocentRowsSurviveDeaths: however often relays end, for reasons of their own, no
// row is parked.
func TestInnocentRowsSurviveDeaths(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		f.config.BatchRows = 3
		for range 60 {
			f.operation(acme, 2)
		}
		var sends atomic.Int64
		deadly := func([]envelope.Event) bool { return sends.Add(1)%7 == 1 }
		deaths := f.reincarnate([]envelope.Scope{acme}, deadly, f.drained(acme))
		if deaths < 5 {
			t.Errorf("%d processes ended, want a fair number", deaths)
		}
	})
}

// TestNoAnswerIsNoDeath: a broker that swallows events makes claims run out as well, but
// not because of the events.
func TestNoAnswerIsNoDeath(t *testing.T) {
	for name, handle := range map[string]func(context.Context, *relaytest.Send){
		"silent":  func(ctx context.Context, _ *relaytest.Send) { <-ctx.Done() },
		"says so": func(_ context.Context, s *relaytest.Send) { s.Rest(relay.Unknown.Wrap(errKilled)) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				acme := f.scope("acme")
				f.operation(acme, 1)
				f.sink.Handle = handle
				stop := f.start(acme)
				f.await("it was tried many times", func() bool { return f.row(acme, 0).Attempts > 10 })
				if got := f.row(acme, 0); got.Parked || got.LastError != "" {
					t.Errorf("%v, want nothing written about it", got)
				}
				stop()
			})
		})
	}
}

// TestAbandonedRowsHoldUpNobody: others are delivered meanwhile, also of the same scope.
func TestAbandonedRowsHoldUpNobody(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		var old []uuid.UUID
		for range 100 {
			old = append(old, f.operation(acme, 1))
		}
		for i := range old {
			f.store.Seize(int64(i+1), "worker/0123456789abcdef", -time.Second)
		}
		f.sink.Handle = func(_ context.Context, send *relaytest.Send) {
			if slices.Contains(old, send.Events[0].OperationID) {
				for _, e := range send.Events {
					if !slices.Contains(old, e.OperationID) {
						t.Errorf("a fresh event was sent together with abandoned ones")
					}
				}
				time.Sleep(5 * time.Second)
			}
			send.Rest(nil)
		}
		stop := f.start(acme)
		time.Sleep(2 * time.Second)
		fresh := f.operation(acme, 1)
		time.Sleep(time.Second)
		f.deliveredOnce(fresh, 1)
		f.await("the others are delivered", f.drained(acme))
		stop()
	})
}

// TestNoRowIsTriedAloneInTurmoil: a process that has just begun may be about to be killed like those before it, and that would
// count against the row. Others that were left behind are delivered at once.
func TestNoRowIsTriedAloneInTurmoil(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		for range 2 {
			f.operation(acme, 1)
		}
		f.store.Seize(1, "worker/0123456789abcdef!!", -time.Second)
		f.store.Seize(2, "worker/fedcba9876543210!", -time.Second)
		stop := f.start(acme)
		time.Sleep(2*relay.DefaultLease - time.Second)
		if alone, other := f.row(acme, 0), f.row(acme, 1); alone.Attempts != 0 || !other.Exported {
			t.Errorf("%v and %v, want that the second was delivered, and the first not tried", alone, other)
		}
		time.Sleep(3 * time.Second)
		if got := f.row(acme, 0); !got.Exported || got.Attempts != 1 {
			t.Errorf("%v, want it delivered", got)
		}
		stop()
	})
}

// TestSurvivorsAreNotCounted: half a second after it sent abandoned rows the process knows
// that they did not end it, and says so in the table, however long the answers take.
func TestSurvivorsAreNotCounted(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		f.operation(acme, 1)
		f.store.Seize(1, "worker/0123456789abcdef!", -time.Second)
		f.unanswered(1)
		stop := f.start(acme)
		f.await("it is claimed", func() bool { return f.row(acme, 0).Attempts == 1 })
		if got := f.row(acme, 0).ClaimedBy; relay.Marks(got) != 2 {
			t.Errorf("claimed by %q, want two marks", got)
		}
		time.Sleep(600 * time.Millisecond)
		if got := f.row(acme, 0); relay.Marks(got.ClaimedBy) != 0 || got.Attempts != 1 {
			t.Errorf("%v, want the same claim without marks", got)
		}
		stop()
	})
}
