package relay

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"outboxrelay/envelope"
)

var (
	foundRows  = Claim{Rows: make([]Row, 1), Seen: 1, More: true}
	foundAll   = Claim{Rows: make([]Row, 3), Seen: 3}
	foundNone  = Claim{}
	onlyPushed = Claim{Seen: 1, Pushed: 1, More: true}
	blocked    = Claim{Seen: 1000}
)

func testScope(t *testing.T, id string) envelope.Scope {
	t.Helper()
	scope, err := envelope.Tenant(id)
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

// nothing waits for answers.
func nothing() float64 { return 0 }

// mustNext takes the next turn. When several scopes are to be looked at, all have something due.
func mustNext(t *testing.T, s *scheduler) *turn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 1000*time.Hour)
	defer cancel()
	for {
		next, ok := s.next(ctx)
		if !ok {
			t.Fatal("no turn in 1,000 hours")
		}
		if !next.look {
			return next.turns[0]
		}
		s.looked(next.turns, make([]time.Duration, len(next.turns)))
	}
}

// nothingDue checks that no turn comes within a time.
func nothingDue(t *testing.T, s *scheduler, within time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	if next, ok := s.next(ctx); ok {
		t.Fatalf("%s has a turn, want none", next.turns[0].scope)
	}
}

func TestSchedulerIsFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const few = 50
		busy := testScope(t, "busy")
		scopes := []envelope.Scope{busy}
		for i := range few {
			scopes = append(scopes, testScope(t, fmt.Sprint("few-", i)))
		}
		s := newScheduler(DefaultPollInterval, envelope.Scope.String, nothing)
		s.set(scopes)
		for round := range 3 {
			var had []envelope.Scope
			for range few + 1 {
				turn := mustNext(t, s)
				had = append(had, turn.scope)
				s.claimed(turn, foundRows)
			}
			for _, scope := range scopes {
				if n := count(had, scope); n != 1 {
					t.Errorf("round %d: %s had %d turns, want one", round, scope, n)
				}
			}
		}
		// An event that comes while others work is due in its place among them.
		late := testScope(t, "late")
		s.set(append(scopes, late))
		for turns := 1; ; turns++ {
			turn := mustNext(t, s)
			s.claimed(turn, foundRows)
			if turn.scope == late {
				break
			}
			if turns > few+1 {
				t.Fatalf("%s had no turn within a round", late)
			}
		}
	})
}

func count(list []envelope.Scope, scope envelope.Scope) (n int) {
	for _, s := range list {
		if s == scope {
			n++
		}
	}
	return n
}

// TestSchedulerConservesWork: what others leave goes to the one that has work, at once.
func TestSchedulerConservesWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy, idle := testScope(t, "busy"), testScope(t, "idle")
		s := newScheduler(DefaultPollInterval, envelope.Scope.String, nothing)
		s.set([]envelope.Scope{busy, idle})
		start, turns := time.Now(), 0
		for range 1000 {
			turn := mustNext(t, s)
			if turn.scope == busy {
				turns++
				s.claimed(turn, foundRows)
			} else {
				s.claimed(turn, foundNone)
			}
		}
		if took := time.Since(start); took != 0 || turns != 999 {
			t.Errorf("%d of 1,000 turns were the busy scope's, in %s; want all but one, without waiting", turns, took)
		}
	})
}

func TestSchedulerWaits(t *testing.T) {
	t.Parallel()
	const ms, us = time.Millisecond, time.Microsecond
	for _, c := range []struct {
		name   string
		poll   time.Duration
		claims []Claim
		want   []time.Duration // before the turn after each claim
	}{
		{"idle", 250 * ms, []Claim{foundNone, foundNone, foundNone, foundNone, foundNone, foundNone, foundNone},
			[]time.Duration{10 * ms, 15 * ms, 22500 * us, 33750 * us, 50625 * us, 75937500, 113906250}},
		{"idle up to the poll interval", 40 * ms, []Claim{foundNone, foundNone, foundNone, foundNone, foundNone, foundNone},
			[]time.Duration{10 * ms, 15 * ms, 22500 * us, 33750 * us, 40 * ms, 40 * ms}},
		{"blocked", 250 * ms, []Claim{blocked, blocked, blocked, blocked}, []time.Duration{100 * ms, 150 * ms, 225 * ms, 250 * ms}},
		{"idle, then blocked", time.Second, []Claim{foundNone, foundNone, blocked, blocked, foundNone},
			[]time.Duration{10 * ms, 15 * ms, 100 * ms, 150 * ms, 225 * ms}},
		{"a few blocked", 250 * ms, []Claim{{Seen: 1}, {Seen: 100}, {Seen: 3}}, []time.Duration{10100 * us, 20 * ms, 30 * ms}},
		{"work begins again", 250 * ms, []Claim{foundNone, foundNone, foundRows, foundNone, onlyPushed, foundNone},
			[]time.Duration{10 * ms, 15 * ms, 0, 10 * ms, 0, 10 * ms}},
		{"a few rows each time", 250 * ms, []Claim{foundNone, foundNone, foundAll, foundAll, foundNone, foundAll},
			[]time.Duration{10 * ms, 15 * ms, 10 * ms, 10 * ms, 15 * ms, 10 * ms}},
		{"short poll interval", 5 * ms, []Claim{foundNone, blocked, foundNone}, []time.Duration{5 * ms, 5 * ms, 5 * ms}},
		{"long poll interval", time.Hour, []Claim{{}, {}, {}, {}},
			[]time.Duration{10 * ms, 15 * ms, 22500 * us, 33750 * us}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newScheduler(c.poll, envelope.Scope.String, nothing)
				s.set([]envelope.Scope{testScope(t, "a")})
				turn := mustNext(t, s)
				for i, claim := range c.claims {
					at := time.Now()
					s.claimed(turn, claim)
					turn = mustNext(t, s)
					if waited := time.Since(at); waited != c.want[i] {
						t.Errorf("after claim %d the scope waited %s, want %s", i, waited, c.want[i])
					}
				}
			})
		})
	}
}

func TestSchedulerSet(t *testing.T) {
	t.Parallel()
	type step struct {
		name string
		do   func(t *testing.T, s *scheduler, a, b envelope.Scope)
	}
	for _, c := range []step{
		{"taken out while in the queue", func(t *testing.T, s *scheduler, a, b envelope.Scope) {
			s.set([]envelope.Scope{b})
			if turn := mustNext(t, s); turn.scope != b {
				t.Errorf("%s has a turn after it was taken out", turn.scope)
			}
			nothingDue(t, s, time.Hour)
		}},
		{"taken out during its turn", func(t *testing.T, s *scheduler, a, b envelope.Scope) {
			turn := mustNext(t, s)
			s.set([]envelope.Scope{b})
			s.claimed(turn, foundRows)
			if turn := mustNext(t, s); turn.scope != b {
				t.Errorf("%s has a turn after it was taken out", turn.scope)
			}
			nothingDue(t, s, time.Hour)
		}},
		{"back while in the queue", func(t *testing.T, s *scheduler, a, b envelope.Scope) {
			s.set([]envelope.Scope{b})
			s.set([]envelope.Scope{b, a})
			if first, second := mustNext(t, s), mustNext(t, s); first.scope != b || second.scope != a {
				t.Errorf("turns are of %s and %s, want %s and %s", first.scope, second.scope, b, a)
			}
			nothingDue(t, s, time.Hour)
		}},
		{"back during its turn", func(t *testing.T, s *scheduler, a, b envelope.Scope) {
			old := mustNext(t, s)
			s.set([]envelope.Scope{b})
			s.set([]envelope.Scope{b, a})
			s.claimed(old, foundRows)
			if first, second := mustNext(t, s), mustNext(t, s); first.scope != b || second.scope != a {
				t.Errorf("turns are of %s and %s, want %s and %s", first.scope, second.scope, b, a)
			}
			nothingDue(t, s, time.Hour)
		}},
		{"kept ones keep their place", func(t *testing.T, s *scheduler, a, b envelope.Scope) {
			s.claimed(mustNext(t, s), foundNone) // a waits 10 ms
			mustNext(t, s)                       // b is out
			s.set([]envelope.Scope{a, b})
			nothingDue(t, s, firstIdleWait-time.Millisecond)
			if turn := mustNext(t, s); turn.scope != a {
				t.Errorf("%s has a turn, want %s", turn.scope, a)
			}
			nothingDue(t, s, time.Hour)
		}},
		{"named twice", func(t *testing.T, s *scheduler, a, b envelope.Scope) {
			c := testScope(t, "c")
			s.set([]envelope.Scope{c, c})
			if s.size() != 1 {
				t.Errorf("%d scopes are served, want 1", s.size())
			}
			mustNext(t, s)
			nothingDue(t, s, time.Hour)
		}},
		{"none", func(t *testing.T, s *scheduler, a, b envelope.Scope) {
			s.set(nil)
			nothingDue(t, s, 1000*time.Hour)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a, b := testScope(t, "a"), testScope(t, "b")
				s := newScheduler(DefaultPollInterval, envelope.Scope.String, nothing)
				s.set([]envelope.Scope{a, b})
				c.do(t, s, a, b)
			})
		})
	}
}

// TestSchedulerWakes: whoever waits takes a turn at the instant at which it comes due.
func TestSchedulerWakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const workers = 4
		s := newScheduler(time.Hour, envelope.Scope.String, nothing)
		start := time.Now()
		var mu sync.Mutex
		took := map[string]time.Duration{}
		var all sync.WaitGroup
		for range workers {
			all.Go(func() {
				turn := mustNext(t, s)
				mu.Lock()
				defer mu.Unlock()
				took[turn.scope.String()] = time.Since(start)
			})
		}
		synctest.Wait()
		late := &turn{scope: testScope(t, "late"), topic: &topic{}}
		s.later(late, time.Minute)
		time.Sleep(time.Second)
		s.set([]envelope.Scope{testScope(t, "a"), testScope(t, "b")})
		synctest.Wait()
		sooner := &turn{scope: testScope(t, "sooner"), topic: &topic{}}
		s.later(sooner, time.Second)
		all.Wait()
		want := map[string]time.Duration{
			`tenant "a"`: time.Second, `tenant "b"`: time.Second, `tenant "sooner"`: 2 * time.Second, `tenant "late"`: time.Minute,
		}
		for scope, at := range want {
			if took[scope] != at {
				t.Errorf("%s had its turn at %s, want %s", scope, took[scope], at)
			}
		}
	})
}

// TestSchedulerKeepsTurns: a turn that nobody could use, because all ended, is not lost
// to whoever comes next.
func TestSchedulerKeepsTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(DefaultPollInterval, envelope.Scope.String, nothing)
		s.set([]envelope.Scope{testScope(t, "a")})
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, ok := s.next(ended); ok {
			t.Error("a turn was given under an ended context")
		}
		mustNext(t, s)
	})
}

// TestPauseOfVeryManyTopics: with a topic for each scope, and all of them denied, the pauses get so long that the probes leave
// most of the time to others.
func TestPauseOfVeryManyTopics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const topics = 10_000
		s := newScheduler(time.Second, envelope.Scope.Stored, nothing)
		var scopes []envelope.Scope
		for i := range topics {
			scopes = append(scopes, testScope(t, fmt.Sprint(i)))
		}
		s.set(scopes)
		for range topics {
			mustNext(t, s) // so that no queue is searched below
		}
		exactly := func(d time.Duration) time.Duration { return d }
		for range 10 { // claims each
			for _, scope := range scopes {
				s.delivered(scope, false, time.Now(), exactly)
			}
			time.Sleep(time.Hour)
		}
		s.delivered(scopes[0], false, time.Now(), exactly)
		if pause, want := time.Until(s.scopes[scopes[0]].topic.paused), topics*time.Second/200; pause != want {
			t.Errorf("paused for %s, want %s: 200 probes a second in all", pause, want)
		}
		for _, scope := range scopes {
			s.delivered(scope, true, time.Now(), exactly)
		}
		if s.trouble != 0 {
			t.Errorf("%d topics count as in trouble after all were mended", s.trouble)
		}
	})
}

// TestProbesAreFewAndNoneIsForgotten: two topics in trouble are probed at a time, and one that is taken out meanwhile makes room.
func TestProbesAreFewAndNoneIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		exactly := func(d time.Duration) time.Duration { return d }
		a, b, c := testScope(t, "a"), testScope(t, "b"), testScope(t, "c")
		s := newScheduler(time.Second, envelope.Scope.Stored, nothing)
		s.set([]envelope.Scope{a, b, c})
		for range 3 {
			turn := mustNext(t, s)
			s.claimed(turn, foundRows)
			s.delivered(turn.scope, false, time.Now(), exactly)
		}
		for range probesAtOnce {
			turn := mustNext(t, s)
			if n, _ := s.limits(turn, 100, 1); n != 1 {
				t.Errorf("a probe of %d rows, want 1", n)
			}
			s.claimed(turn, foundRows)
		}
		nothingDue(t, s, longestProbe/2)
		if s.topics["c"].prober != nil {
			t.Fatal("a third topic is being probed")
		}
		s.set([]envelope.Scope{c})
		turn := mustNext(t, s)
		if n, _ := s.limits(turn, 100, 1); turn.scope != c || n != 1 {
			t.Errorf("the turn is of %s, want a probe of %s", turn.scope, c)
		}
		s.delivered(c, true, time.Now(), exactly)
		if s.probes != 0 || s.trouble != 0 {
			t.Errorf("%d probes and %d topics in trouble, want none", s.probes, s.trouble)
		}
	})
}

// TestOnlyWhoHasWorkProbes: scopes without rows that are due do not take the turn to probe from the one that has some.
func TestOnlyWhoHasWorkProbes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		exactly := func(d time.Duration) time.Duration { return d }
		busy := testScope(t, "busy")
		s := newScheduler(DefaultPollInterval, func(envelope.Scope) string { return "shared" }, nothing)
		s.set([]envelope.Scope{busy, testScope(t, "one"), testScope(t, "two")})
		for range 3 {
			turn := mustNext(t, s)
			s.claimed(turn, map[bool]Claim{true: foundRows}[turn.scope == busy])
		}
		start := time.Now()
		s.delivered(busy, false, start, exactly)
		for {
			next, ok := s.next(t.Context())
			if !ok {
				t.Fatal("no turn")
			}
			if !next.look {
				if next.turns[0].scope != busy {
					t.Errorf("%s probes, which has nothing to send", next.turns[0].scope)
				}
				break
			}
			time.Sleep(3 * othersFirst) // a slow database
			s.looked(next.turns, []time.Duration{Never, Never, Never}[:len(next.turns)])
		}
		if took := time.Since(start); took > firstPause+10*othersFirst {
			t.Errorf("probed after %s, want soon after the pause of %s", took, firstPause)
		}
	})
}

// While another relay claims of a scope it comes again after growing waits, and what is known of it stays.
func TestSchedulerWaitsForOtherRelays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(DefaultPollInterval, func(envelope.Scope) string { return "events" }, nothing)
		s.set([]envelope.Scope{testScope(t, "acme")})
		next := func(want time.Duration) *turn {
			t.Helper()
			begin := time.Now()
			next, ok := s.next(t.Context())
			if took := time.Since(begin); !ok || next.look || took != want {
				t.Fatalf("a turn came after %s, for a look %t, want one for a claim after %s", took, next.look, want)
			}
			return next.turns[0]
		}
		s.claimed(next(0), Claim{Rows: make([]Row, 1), More: true})
		wait := time.Duration(0)
		for range 12 {
			turn := next(wait)
			if !turn.much {
				t.Error("it is forgotten that the scope has much")
			}
			s.claimed(turn, Claim{Busy: true})
			wait = min(max(wait*3/2, firstIdleWait), DefaultPollInterval)
		}
		if wait != DefaultPollInterval {
			t.Errorf("it waits for %s in the end, want the poll interval", wait)
		}
	})
}
