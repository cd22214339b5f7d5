package kafkasink

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/relay"
)

// stall holds up the handing over of a second record until the first one has failed, or for a moment: a busy machine does that.
type stall struct {
	records atomic.Int64
	failed  chan struct{}
}

func (s *stall) OnProduceRecordBuffered(*kgo.Record) {
	if s.records.Add(1) == 2 {
		select {
		case <-s.failed:
		case <-time.After(300 * time.Millisecond): // it can't fail meanwhile, which is what is tested
		}
	}
}

// An event whose predecessor is refused at this very moment does not overtake it.
func TestNothingOvertakesWhatIsRefusedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]*kerr.Error{"server error": kerr.UnknownServerError, "too large": kerr.MessageTooLarge} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := kafkatest.Fake(t)
			cfg := config(broker.Broker, broker.Topic(t, 1, nil))
			hold := &stall{failed: make(chan struct{})}
			cfg.Hooks = []kgo.Hook{hold}
			sink := openReady(t, cfg, quick())
			broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: refusal})
			operation := uuid.New()
			var events []envelope.Event
			for version := range 5 {
				events = append(events, event(t, operation, version+1, 100))
			}
			errs := make(chan error, len(events))
			sink.Publish(t.Context(), events, func(i int, err error) {
				if i == 0 {
					close(hold.failed)
				}
				errs <- err
			})
			for range events {
				if err := <-errs; relay.ClassOf(err) == relay.Delivered {
					t.Error("an event was delivered although its predecessor was refused")
				}
			}
		})
	}
}

// window holds up an answer that the client has read already, until an event has been handed over; and the handing over of
// the next event until that one has failed.
type window struct {
	armed         atomic.Bool
	read          chan struct{} // closed when the answer has been read
	handed        chan struct{} // closed when the event has been handed over
	failed        chan struct{} // closed by the test
	records       int
	handing, once sync.Once
}

func (w *window) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if key == int16(kmsg.Produce) && w.armed.Load() {
		w.once.Do(func() {
			close(w.read)
			<-w.handed
		})
	}
}

func (w *window) OnProduceRecordBuffered(*kgo.Record) {
	select {
	case <-w.read:
	default:
		return
	}
	if w.records++; w.records == 2 {
		w.handing.Do(func() {
			close(w.handed)
			<-w.failed
		})
	}
}

// An answer that was read before the events of an operation were handed over may fail the first of them, while the second is
// on its way: it is not sent. This happened while a broker refused a session that had to log in again.
func TestNothingOvertakesWhatFailsUnseen(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Fake(t)
	topic := broker.Topic(t, 1, nil)
	sink := openReady(t, config(broker.Broker, topic), quick())
	w := &window{read: make(chan struct{}), handed: make(chan struct{}), failed: make(chan struct{})}
	first, err := newClient(sink.cfg, sink.topics.terms, kgo.WithHooks(w))
	if err != nil {
		t.Fatal(err)
	}
	sink.mu.Lock()
	t.Cleanup(sink.client.Close)
	sink.client = first
	sink.mu.Unlock()
	publish(t, sink, event(t, uuid.New(), 1, 10)).wantAll(relay.Delivered)

	w.armed.Store(true)
	broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.IllegalSaslState})
	refused := publish(t, sink, event(t, uuid.New(), 1, 10))
	<-w.read
	operation := uuid.New()
	events := []envelope.Event{event(t, operation, 1, 10), event(t, operation, 2, 10)}
	a := &answers{t: t, errs: make([]error, 2), got: make([]bool, 2), open: 2, all: make(chan struct{})}
	sink.Publish(t.Context(), events, func(i int, err error) {
		a.answer(i, err)
		if i == 0 {
			close(w.failed)
		}
	})
	refused.wantAll(relay.Environment)
	if errs := a.wait(); relay.ClassOf(errs[0]) != relay.Environment || relay.ClassOf(errs[1]) == relay.Delivered {
		t.Errorf("answers are %v, want that the first failed with the batch before it, and the second was not sent", errs)
	}
	waitFor(t, "another client", func() error { return same(sink, first) })
	publish(t, sink, events...).wantAll(relay.Delivered)
	if got, want := ids(t, broker.Broker, topic)[1:], []string{events[0].ID(), events[1].ID()}; !slices.Equal(got, want) {
		t.Errorf("topic holds %q, want %q", got, want)
	}
}

// TestOrderWhileBrokersRefuse: whatever is refused, and whenever, each operation's events reach the topic in order. What was
// not delivered is sent again, from the first such event of its operation on, as the relay does it.
func TestOrderWhileBrokersRefuse(t *testing.T) {
	t.Parallel()
	const senders, rounds, operations, versions = 4, 60, 8, 4
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	broker := kafkatest.Fake(t)
	topic := broker.Topic(t, 1, nil)
	sink := openReady(t, config(broker.Broker, topic), quick())
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 0))
	sometimes := func(kmsg.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(8) == 0
	}
	for _, refusal := range []*kerr.Error{kerr.IllegalSaslState, kerr.UnknownServerError, kerr.InvalidRecord} {
		broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: refusal, Count: -1, When: sometimes})
	}
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			for range rounds {
				var left []envelope.Event
				for range operations {
					operation := uuid.New()
					for version := range versions {
						left = append(left, event(t, operation, version+1, 10))
					}
				}
				for len(left) > 0 {
					errs := publish(t, sink, left...).wait()
					var again []envelope.Event
					behind := map[uuid.UUID]bool{}
					for i, err := range errs {
						if behind[left[i].OperationID] = behind[left[i].OperationID] || err != nil; behind[left[i].OperationID] {
							again = append(again, left[i])
						}
					}
					left = again
				}
			}
		})
	}
	all.Wait()
	last := map[string]int{}
	for _, id := range ids(t, broker.Broker, topic) {
		operation, text, _ := strings.Cut(id, ":")
		version, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		if version > last[operation]+1 {
			t.Fatalf("state version %d of operation %s came first after %d", version, operation, last[operation])
		}
		last[operation] = max(last[operation], version)
	}
	if len(last) != senders*rounds*operations {
		t.Errorf("events of %d operations arrived, want %d", len(last), senders*rounds*operations)
	}
}
