package relay

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func whole(d time.Duration) time.Duration { return d }

// callers keeps calling through a gate until ctx ends, each of n as fast as it may.
func callers(ctx context.Context, g *gate, n int, call func() error) *sync.WaitGroup {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for {
				leave, ok := g.enter(ctx)
				if !ok {
					return
				}
				if err := call(); err != nil {
					g.failed(err)
				} else {
					g.worked()
				}
				leave()
			}
		})
	}
	return &all
}

func TestGateWhileAllFails(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 4, 8, 100} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			g := newGate(whole)
			start := time.Now()
			var mu sync.Mutex
			var at []time.Duration
			inside := 0
			callers(ctx, g, workers, func() error {
				mu.Lock()
				at = append(at, time.Since(start))
				inside++
				if inside > 1 && time.Since(start) > time.Millisecond {
					t.Errorf("%d calls at once while the gate is closed", inside)
				}
				mu.Unlock()
				time.Sleep(time.Millisecond)
				mu.Lock()
				inside--
				mu.Unlock()
				return errors.New("away")
			}).Wait()

			// 250 ms, doubled up to 10 s: 35 in 5 minutes, besides what was under way at first.
			if n := len(at) - workers; n < 30 || n > 36 {
				t.Errorf("%d workers made %d attempts after the first, want about 34", workers, n)
			}
			wait := firstDatabaseWait
			for i := workers; i < len(at); i++ {
				if got := at[i] - at[i-1]; got < wait || got > wait+10*time.Millisecond {
					t.Errorf("%d workers: attempt %d came after %s, want %s", workers, i, got, wait)
				}
				wait = min(2*wait, longestDatabaseWait)
			}
		})
	}
}

// TestGateOpens: the first success lets all through at once, and what failed before is
// forgotten.
func TestGateOpens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := newGate(whole)
		var down atomic.Bool
		var calls atomic.Int64
		down.Store(true)
		all := callers(ctx, g, 8, func() error {
			calls.Add(1)
			time.Sleep(time.Millisecond)
			if down.Load() {
				return errors.New("away")
			}
			return nil
		})
		time.Sleep(5 * time.Minute)
		down.Store(false)
		if _, err := g.health(); err == nil {
			t.Error("health is good while every call fails")
		}
		for began := time.Now(); ; time.Sleep(time.Millisecond) {
			if _, err := g.health(); err == nil {
				break
			}
			if time.Since(began) > longestDatabaseWait+time.Second {
				t.Fatal("the gate did not open although calls work")
			}
		}
		before := calls.Load()
		time.Sleep(100 * time.Millisecond)
		if n := calls.Load() - before; n < 8*95 {
			t.Errorf("%d calls in the 100 ms after the gate opened, want 8 callers' of 1 ms each", n)
		}
		// The next outage begins with the shortest wait.
		down.Store(true)
		time.Sleep(10 * time.Millisecond)
		before = calls.Load()
		time.Sleep(firstDatabaseWait)
		if n := calls.Load() - before; n != 1 {
			t.Errorf("%d attempts in the first %s of a new outage, want 1", n, firstDatabaseWait)
		}
		cancel()
		all.Wait()
	})
}

// TestGateTakesOutsideNews: a call that did not come through the gate opens it too.
func TestGateTakesOutsideNews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(whole)
		for range 10 {
			g.failed(errors.New("away"))
			time.Sleep(longestDatabaseWait)
		}
		g.failed(errors.New("away"))
		start := time.Now()
		time.AfterFunc(time.Second, g.worked)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				leave, ok := g.enter(t.Context())
				if !ok {
					t.Error("the gate let nobody in")
					return
				}
				leave()
				if waited := time.Since(start); waited != time.Second {
					t.Errorf("a caller waited %s, want until the success", waited)
				}
			})
		}
		all.Wait()
		if seen, err := g.health(); err != nil || time.Since(seen) != 0 {
			t.Errorf("health: %v, last seen %s ago", err, time.Since(seen))
		}
	})
}

// TestGateEndsWithContext: a waiting caller goes away, and leaves its place to others.
func TestGateEndsWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(whole)
		g.failed(errors.New("away"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if _, ok := g.enter(ctx); ok {
					t.Error("the closed gate let a caller in whose context ended")
				}
			})
		}
		all.Wait()
		leave, ok := g.enter(t.Context())
		if !ok {
			t.Fatal("the place of those who went away is not free")
		}
		leave()
	})
}

// TestGateAndRefusals: a database that refuses some calls is called on by all, and one that refuses every call by one at a time.
func TestGateAndRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(whole)
		closed := func() bool {
			opened, _ := g.state()
			select {
			case <-opened:
				return false
			default:
				return true
			}
		}
		g.worked()
		for range 100 {
			g.refused(errors.New("refused"))
			time.Sleep(time.Second)
			g.worked()
		}
		if closed() {
			t.Error("the gate is closed although calls work")
		}
		g.refused(errors.New("refused"))
		time.Sleep(refusing + time.Second)
		if _, err := g.health(); err == nil || closed() {
			t.Errorf("health is %v, closed %t; want the refusal, and open", err, closed())
		}
		g.refused(errors.New("refused"))
		if !closed() {
			t.Error("the gate is open although nothing but refusals has come for long")
		}
	})
}
