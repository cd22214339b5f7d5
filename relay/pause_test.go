package relay_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

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
				var sends, events atomic.Int64
				f.sink.Handle = func(_ context.Context, s *relaytest.Send) {
					if s.Events[0].Scope == good || !broken.Load() {
						s.Rest(nil)
						return
					}
					sends.Add(1)
					events.Add(int64(len(s.Events)))
					s.Rest(class.Wrap(errors.New("topic denied")))
				}
				stop := f.start(bad, good)
				time.Sleep(10 * time.Minute)
				// Four workers may have sent a batch each before the first answer; then 1 s,
				// doubled up to 10 s, and 3/4 of that on average.
				if n := sends.Load(); n > 110 || n < 60 {
					t.Errorf("%d sends in 10 minutes, want about 80", n)
				}
				if n := events.Load(); n > 4*40+110 {
					t.Errorf("%d events were sent, want a batch for each worker, then one event a time", n)
				}
				for i := range 40 {
					if row := f.row(bad, i); row.Parked || row.Attempts > 20 {
						t.Fatalf("%v, want it neither parked nor tried often", row)
					}
				}

				f.operation(good, 3)
				begin := time.Now()
				f.await("the good scope is drained", f.drained(good))
				if took := time.Since(begin); took > time.Second {
					t.Errorf("the good scope took %s beside the bad one", took)
				}

				broken.Store(false)
				begin = time.Now()
				f.await("the bad scope is drained", f.drained(bad))
				if took := time.Since(begin); took > 12*time.Second {
					t.Errorf("the bad scope took %s after it was mended, want the longest pause at most", took)
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
		r, err := relay.New(f.config, f.store, oneTopic{f.sink}, f.tally)
		if err != nil {
			f.Fatal(err)
		}
		f.relay = r
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
