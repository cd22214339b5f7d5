package kafkasink

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kmsg"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/relay"
)

// swallow keeps the answers to a broker's next n produce requests back until release is called or the test ends.
func swallow(t *testing.T, broker *kafkatest.Faked, n int) (release func()) {
	t.Helper()
	gate := make(chan struct{})
	release = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(release)
	broker.Cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		broker.Cluster.KeepControl()
		if n > 0 {
			n--
			broker.Cluster.SleepControl(func() { <-gate })
		}
		return nil, nil, false
	})
	return release
}

// impatient is the shortest delivery time-out that the client takes.
const impatient = time.Second

func TestLateAnswersCount(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Fake(t)
	topic := broker.Topic(t, 1, nil)
	cfg := config(broker.Broker, topic)
	cfg.DeliveryTimeout = impatient
	sink := openReady(t, cfg, quick())
	release := swallow(t, broker, 1)

	e := event(t, uuid.New(), 1, 10)
	a := publish(t, sink, e)
	overdue(t, sink)
	if got := a.unanswered(); got != 1 {
		t.Errorf("%d events unanswered, want 1: its outcome is not known yet", got)
	}
	release()
	a.wantAll(relay.Delivered)
	wantReady(t, sink)
	if got := ids(t, broker.Broker, topic); !slices.Equal(got, []string{e.ID()}) {
		t.Errorf("topic holds %q, want %s once", got, e.ID())
	}
}

func TestStuckClientIsReplaced(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Fake(t)
	topic := broker.Topic(t, 1, nil)
	cfg := config(broker.Broker, topic)
	cfg.DeliveryTimeout = impatient
	pace := quick()
	pace.stuck = 1500 * time.Millisecond
	sink := openReady(t, cfg, pace)
	first := sink.current()
	release := swallow(t, broker, 1)

	operation := uuid.New()
	a := publish(t, sink, event(t, operation, 1, 10), event(t, operation, 2, 10))
	overdue(t, sink)
	waitFor(t, "another client", func() error { return same(sink, first) })
	a.wantAll(relay.Unknown)
	wantReady(t, sink)
	publish(t, sink, event(t, operation, 1, 10), event(t, operation, 2, 10)).wantAll(relay.Delivered)
	release()
}

// same gives an error as long as a sink's client is the same as before.
func same(sink *Sink, before *client) error {
	if sink.current() == before {
		return errors.New("it is the same as before")
	}
	return nil
}

// TestCloseAnswersTheRest at once, though the delivery time-out is long.
func TestCloseAnswersTheRest(t *testing.T) {
	t.Parallel()
	for name, replaced := range map[string]bool{"present client": false, "replaced client": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := kafkatest.Fake(t)
			topic := broker.Topic(t, 1, nil)
			cfg := config(broker.Broker, topic)
			cfg.DeliveryTimeout = time.Hour
			sink := openReady(t, cfg, quick())
			swallow(t, broker, 100)
			a := publish(t, sink, event(t, uuid.New(), 1, 10), event(t, uuid.New(), 1, 20_000))
			if replaced {
				first := sink.current()
				set(t, broker.Broker, topic, "max.message.bytes", "100000")
				waitFor(t, "another client", func() error { return same(sink, first) })
			}
			sink.Close()
			if got := a.unanswered(); got != 0 {
				t.Errorf("%d events unanswered after Close", got)
			}
			a.wantAll(relay.Unknown)
			publish(t, sink, event(t, uuid.New(), 1, 10)).wantAll(relay.Unknown)
		})
	}
}

// TestReplacedClientsFinish: a client that is replaced in the middle of its work loses nothing and disorders nothing.
func TestReplacedClientsFinish(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Fake(t)
	topic := broker.Topic(t, 3, nil)
	sink := openReady(t, config(broker.Broker, topic), quick())
	var sent []string
	var mu sync.Mutex
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			operation := uuid.New()
			for version := 1; version < 200; version += 10 {
				var events []envelope.Event
				for n := range 10 {
					events = append(events, event(t, operation, version+n, 10))
				}
				publish(t, sink, events...).wantAll(relay.Delivered)
				mu.Lock()
				for i := range events {
					sent = append(sent, events[i].ID())
				}
				mu.Unlock()
			}
		})
	}
	done := make(chan struct{})
	go func() { senders.Wait(); close(done) }()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		case <-time.After(20 * time.Millisecond):
			sink.replace(t.Context())
		}
	}
	checkTopic(t, broker.Broker, topic, sent)
}

// TestClientsDoNotGrowOld: brokers never get a first batch, after a day of silence, from a client that takes them to know it still.
func TestClientsDoNotGrowOld(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Fake(t)
	topic := broker.Topic(t, 1, nil)
	pace := quick()
	pace.life = 100 * time.Millisecond
	sink := openReady(t, config(broker.Broker, topic), pace)
	operation := uuid.New()
	var sent []string
	for version := 1; version <= 3; version++ {
		young := sink.current()
		e := event(t, operation, version, 10)
		publish(t, sink, e).wantAll(relay.Delivered)
		sent = append(sent, e.ID())
		waitFor(t, "another client", func() error {
			if sink.current() == young {
				return errors.New("it is the same")
			}
			return nil
		})
	}
	checkTopic(t, broker.Broker, topic, sent)
}

func TestTooManyUnanswered(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Fake(t)
	topic := broker.Topic(t, 1, nil)
	cfg := config(broker.Broker, topic)
	cfg.DeliveryTimeout, cfg.MaxInFlight = time.Hour, 2
	sink := openReady(t, cfg, quick())
	release := swallow(t, broker, 1)
	operation := uuid.New()
	a := publish(t, sink, event(t, operation, 1, 10), event(t, operation, 2, 10))
	if err := sink.Ready(envelope.NonTenant()); err != nil {
		t.Errorf("Ready with as many as allowed: %v", err)
	}
	b := publish(t, sink, event(t, operation, 3, 10))
	if err := sink.Ready(envelope.NonTenant()); err == nil || !strings.Contains(err.Error(), "3 events are unanswered") {
		t.Errorf("Ready = %v, want too many named", err)
	}
	release()
	a.wantAll(relay.Delivered)
	b.wantAll(relay.Delivered)
	wantReady(t, sink)
}

// TestOldUnansweredEventsDoNotCount: what a silent partition or broker keeps does not stop what is for others.
func TestOldUnansweredEventsDoNotCount(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Fake(t)
	topic := broker.Topic(t, 1, nil)
	cfg := config(broker.Broker, topic)
	cfg.DeliveryTimeout, cfg.MaxInFlight = impatient, 1
	sink := openReady(t, cfg, quick())
	release := swallow(t, broker, 1)
	operation := uuid.New()
	a := publish(t, sink, event(t, operation, 1, 10), event(t, operation, 2, 10))
	wantReason(t, sink, topic, "2 events are unanswered")
	wantReady(t, sink)
	if got := a.unanswered(); got != 2 {
		t.Errorf("%d events unanswered, want both", got)
	}
	release()
	a.wantAll(relay.Delivered)
}

// overdue waits until an event has had no answer for longer than the delivery time-out.
func overdue(t *testing.T, sink *Sink) {
	t.Helper()
	waitFor(t, "an overdue answer", func() error {
		if since, _ := sink.waiting(func(*send) bool { return true }); since <= sink.cfg.DeliveryTimeout {
			return errors.New("none is overdue")
		}
		return nil
	})
}
