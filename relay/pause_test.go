package relay_test

import (
	"context"
	"errors"
	"fmt"
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

// TestPause: a sink that lets nothing of a scope through, which is nobody's fault, is
// asked seldom and with one row, whatever it answers and however fast; other scopes go
// on; and when it mends, the backlog follows at once.
func TestPause(t *testing.T) {
	for name, class := range map[string]relay.Class{
		"environment": relay.Environment, "not attempted": relay.NotAttempted,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				bad, good := f.scope("bad"), f.scope("good")
				for range 10 {
					f.operation(bad, 4)
				}
				var broken atomic.Bool
				broken.Store(true)
				var mu sync.Mutex
				var sends []int // events of each
				f.sink.Handle = func(_ context.Context, s *relaytest.Send) {
					if s.Events[0].Scope == good || !broken.Load() {
						s.Rest(nil)
						return
					}
					mu.Lock()
					sends = append(sends, len(s.Events))
					mu.Unlock()
					s.Rest(class.Wrap(errors.New("topic denied")))
				}
				stop := f.start(bad, good)
				time.Sleep(10 * time.Minute)
				// Four workers may have sent a batch each before the first answer; then 1 s,
				// doubled up to 10 s, and 3/4 of that on average.
				mu.Lock()
				sent := slices.Clone(sends)
				mu.Unlock()
				if n := len(sent); n > 110 || n < 60 {
					t.Errorf("%d sends in 10 minutes, want about 80", n)
				}
				first := slices.Index(sent, 1)
				if first < 1 || first > 4 {
					t.Fatalf("sends of %d events, want a batch from each worker at most, and then a single event", sent)
				}
				for i, n := range sent[first:] {
					if n > 1<<min(i, 30) {
						t.Fatalf("sends of %d events after the first ones, want twice as many each time at most", sent[first:])
					}
				}
				for i := range 40 {
					if row := f.row(bad, i); row.Parked || row.Attempts > len(sent) {
						t.Fatalf("%v, want it not parked, and no attempt that was none", row)
					}
				}

				f.operation(good, 3)
				begin := time.Now()
				f.await("the good scope is drained", f.drained(good))
				if took := time.Since(begin); took > time.Second {
					t.Errorf("the good scope took %s beside the bad one", took)
				}
				if bad, good := f.relay.Stalled(bad), f.relay.Stalled(good); bad == nil || good != nil {
					t.Errorf("stalled: %v, and the good scope %v", bad, good)
				}

				broken.Store(false)
				begin = time.Now()
				f.await("the bad scope is drained", f.drained(bad))
				if took := time.Since(begin); took > 12*time.Second {
					t.Errorf("the bad scope took %s after it was mended, want the longest pause at most", took)
				}
				if err := f.relay.Stalled(bad); err != nil {
					t.Errorf("stalled after it was mended: %v", err)
				}
				stop()
			})
		})
	}
}

// TestRowFaultsDoNotPause: events that can't be sent as they are say nothing about the
// way to the sink.
func TestRowFaultsDoNotPause(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		for range 50 {
			f.operation(acme, 2)
		}
		var mended atomic.Bool
		f.sink.Handle = func(_ context.Context, s *relaytest.Send) {
			if mended.Load() {
				s.Rest(nil)
			} else {
				s.Rest(relay.RowFault.Wrap(errors.New("too large")))
			}
		}
		stop := f.start(acme)
		time.Sleep(time.Second)
		begin := time.Now()
		mended.Store(true)
		f.operation(acme, 1)
		f.await("the new row is exported", func() bool { return f.row(acme, 100).Exported })
		if took := time.Since(begin); took > relay.DefaultPollInterval+10*time.Millisecond {
			t.Errorf("a new row took %s after row faults", took)
		}
		stop()
	})
}

// oneTopic is a sink that sends all scopes to one topic.
type oneTopic struct{ *relaytest.Sink }

func (oneTopic) Topic(envelope.Scope) string { return "events" }

// TestPauseOfASharedTopic: however many scopes have events for a topic that lets nothing
// through, it is asked no more often than for one; and all go on when it mends.
func TestPauseOfASharedTopic(t *testing.T) {
	bubble(t, func(f *fixture) {
		scopes := f.scopes(60)
		for _, scope := range scopes[30:] {
			f.operation(scope, 2)
		}
		var broken atomic.Bool
		broken.Store(true)
		var sends atomic.Int64
		f.sink.Handle = func(_ context.Context, s *relaytest.Send) {
			if !broken.Load() {
				s.Rest(nil)
				return
			}
			sends.Add(1)
			s.Rest(relay.Environment.Wrap(errors.New("not enough replicas")))
		}
		f.makeFor(oneTopic{f.sink})
		stop := f.start(scopes...)
		time.Sleep(2 * time.Minute)
		if n := sends.Load(); n > 30 || n < 12 {
			t.Errorf("%d sends in 2 minutes, want about 20", n)
		}
		broken.Store(false)
		begin := time.Now()
		f.await("all are delivered", f.drained(scopes...))
		if took := time.Since(begin); took > 12*time.Second {
			t.Errorf("it took %s after the topic was mended, want the longest pause and little more", took)
		}
		stop()
	})
}

// TestOneDeadPartition: events of a partition that takes none delay those of others only by some probes, whether they are of
// the same tenant or not, and however many they are.
func TestOneDeadPartition(t *testing.T) {
	for _, c := range []struct {
		tenants, dead int
		atMost        time.Duration
	}{{4, 10, time.Minute}, {1, 10, time.Minute}, {4, 500, 3 * time.Minute}, {1, 500, 3 * time.Minute}} {
		t.Run(fmt.Sprintf("%d tenants, %d events", c.tenants, c.dead), func(t *testing.T) {
			bubble(t, func(f *fixture) {
				scopes := f.scopes(c.tenants)
				dead := map[uuid.UUID]bool{}
				for range c.dead {
					dead[f.operation(scopes[0], 1)] = true
				}
				written := map[uuid.UUID]time.Time{}
				var mu sync.Mutex
				var worst time.Duration
				f.sink.Handle = func(_ context.Context, s *relaytest.Send) {
					mu.Lock()
					for i := range s.Events {
						if at, ok := written[s.Events[i].OperationID]; ok {
							worst = max(worst, time.Since(at))
							s.Answer(i, nil)
						}
					}
					mu.Unlock()
					time.Sleep(relay.DefaultDeliveryTimeout)
					s.Rest(relay.Environment.Wrap(errors.New("records have timed out")))
				}
				f.makeFor(oneTopic{f.sink})
				stop := f.start(scopes...)
				for n := range 300 {
					id := uuid.New()
					mu.Lock()
					written[id] = time.Now()
					mu.Unlock()
					f.store.Add(namespace, scopes[n%c.tenants], id, 1)
					time.Sleep(time.Second)
				}
				f.await("all others are delivered", func() bool {
					left := 0
					for _, scope := range scopes {
						for _, row := range f.store.Rows(scope) {
							if !row.Exported && !dead[row.Operation] {
								left++
							}
						}
					}
					return left == 0
				})
				if worst > c.atMost {
					t.Errorf("an event of another partition took %s, want %s at most", worst, c.atMost)
				}
				t.Logf("at most %s", worst)
				stop()
			})
		})
	}
}

// TestLateAnswersOpenTheWay: events that are acknowledged, only later than usual, show that the topic works.
func TestLateAnswersOpenTheWay(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		f.config.BatchRows = 50
		f.make()
		for range 500 {
			f.operation(acme, 1)
		}
		f.sink.Handle = func(_ context.Context, s *relaytest.Send) {
			time.Sleep(relay.DefaultDeliveryTimeout + 2*time.Second)
			s.Rest(nil)
		}
		begin := time.Now()
		stop := f.start(acme)
		f.await("all are exported", f.drained(acme))
		if took := time.Since(begin); took > 5*time.Minute {
			t.Errorf("it took %s", took)
		}
		stop()
	})
}

// TestProberTakenOut: a topic whose probe got through is open, also if its scope is not served any more.
func TestProberTakenOut(t *testing.T) {
	bubble(t, func(f *fixture) {
		a, b := f.scope("a"), f.scope("b")
		for range 20 {
			f.operation(a, 1)
		}
		var broken atomic.Bool
		broken.Store(true)
		probing := make(chan struct{}, 100)
		f.sink.Handle = func(_ context.Context, s *relaytest.Send) {
			if broken.Load() {
				s.Rest(relay.Environment.Wrap(errors.New("topic denied")))
				return
			}
			probing <- struct{}{}
			time.Sleep(500 * time.Millisecond)
			s.Rest(nil)
		}
		f.makeFor(oneTopic{f.sink})
		stop := f.start(a, b)
		time.Sleep(20 * time.Second)
		broken.Store(false)
		<-probing
		f.relay.SetScopes([]envelope.Scope{b})
		f.operation(b, 1)
		begin := time.Now()
		f.await("the other scope is drained", f.drained(b))
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("the other scope waited %s", took)
		}
		stop()
	})
}

// TestSlowTopicsHoldNoOther: topics that refuse everything only after a long time don't hold up others with it.
func TestSlowTopicsHoldNoOther(t *testing.T) {
	bubble(t, func(f *fixture) {
		scopes := f.scopes(17)
		good := scopes[16]
		for _, scope := range scopes[:16] {
			for range 20 {
				f.operation(scope, 1)
			}
		}
		f.sink.Handle = func(_ context.Context, s *relaytest.Send) {
			if s.Events[0].Scope != good {
				time.Sleep(relay.DefaultDeliveryTimeout)
				s.Rest(relay.Environment.Wrap(errors.New("records have timed out")))
				return
			}
			s.Rest(nil)
		}
		stop := f.start(scopes...)
		time.Sleep(2 * time.Minute) // until it is known of all
		for range 60 {
			f.operation(good, 1)
			begin := time.Now()
			f.await("the good scope is drained", f.drained(good))
			if took := time.Since(begin); took > time.Second {
				t.Errorf("an event took %s", took)
			}
			time.Sleep(time.Second)
		}
		stop()
	})
}
