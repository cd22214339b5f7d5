package relay

import (
	"container/heap"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"outboxrelay/envelope"
)

// Scopes that have little are claimed of together, if events get through to their topic, one that has much by itself, and after
// a claim that failed each by itself: which of them was the reason is known then.
func TestSchedulerMixesLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(DefaultPollInterval, func(envelope.Scope) string { return "events" }, nothing)
		var scopes []envelope.Scope
		for i := range mostMixed + 4 {
			scopes = append(scopes, testScope(t, fmt.Sprint("t-", i)))
		}
		s.set(scopes)
		ctx := t.Context()
		take := func() []*turn {
			next, ok := s.next(ctx)
			if ok && next.look {
				s.looked(next.turns, make([]time.Duration, len(next.turns)))
				next, ok = s.next(ctx)
			}
			if !ok || next.look {
				t.Fatal("no turn")
			}
			return s.mix(next.turns[0], mostMixed)
		}
		unknown := take()
		if len(unknown) != 1 {
			t.Errorf("while nothing has got through %d scopes are claimed of together, want one", len(unknown))
		}
		s.later(unknown[0], 0)
		s.delivered(unknown[0].scope, true, time.Now(), func(d time.Duration) time.Duration { return d })
		first, second := take(), take()
		if len(first) != mostMixed || len(second) != 4 {
			t.Fatalf("%d and %d scopes are claimed of together, want %d and 4", len(first), len(second), mostMixed)
		}
		for i, turn := range append(first, second...) {
			s.claimed(turn, Claim{Rows: make([]Row, 1), More: i < 2})
		}
		for i := range 2 {
			if heavy := take(); len(heavy) != 1 || heavy[0] != first[i] {
				t.Errorf("with one that has much, %d scopes are claimed of together, want it alone", len(heavy))
			}
		}
		light := take()
		if len(light) != mostMixed {
			t.Errorf("%d scopes are claimed of together, want %d", len(light), mostMixed)
		}
		s.apart(light)
		take() // those two that are left
		for range light {
			if alone := take(); len(alone) != 1 {
				t.Errorf("after a claim that failed %d scopes are claimed of together, want one", len(alone))
			}
		}
	})
}

// Relays with the same scopes begin with different ones. The caller's list stays as it is.
func TestRelaysBeginWithDifferentScopes(t *testing.T) {
	t.Parallel()
	var given []envelope.Scope
	for i := range 100 {
		given = append(given, testScope(t, fmt.Sprint("t-", i)))
	}
	scopes := slices.Clone(given)
	var orders [2][]envelope.Scope
	for i := range orders {
		r := &Relay{scheduler: newScheduler(DefaultPollInterval, envelope.Scope.String, nothing)}
		r.SetScopes(scopes)
		for r.scheduler.idle.Len() > 0 {
			orders[i] = append(orders[i], heap.Pop(&r.scheduler.idle).(*turn).scope)
		}
	}
	if len(orders[0]) != len(given) || slices.Equal(orders[0], orders[1]) {
		t.Errorf("two relays begin with %d and %d scopes, in the same order", len(orders[0]), len(orders[1]))
	}
	if !slices.Equal(scopes, given) {
		t.Error("the caller's list was changed")
	}
}
