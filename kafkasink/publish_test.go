package kafkasink

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/relay"
)

// both runs a test on a fake broker and on a real one.
func both(t *testing.T, test func(t *testing.T, broker *kafkatest.Broker)) {
	t.Parallel()
	t.Run("fake", func(t *testing.T) { t.Parallel(); test(t, kafkatest.Fake(t).Broker) })
	t.Run("real", func(t *testing.T) { t.Parallel(); test(t, kafkatest.Plain(t)) })
}

// TestLargeEventHarmsNoOther: clients that fail a batch for its largest record, or pair answers with records by position,
// would lose the small ones.
func TestLargeEventHarmsNoOther(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		topic := broker.Topic(t, 1, map[string]string{"max.message.bytes": "1048588"})
		sink := openReady(t, config(broker, topic), quick())
		first, large, last := event(t, uuid.New(), 1, 10), event(t, uuid.New(), 1, 1_100_000), event(t, uuid.New(), 1, 10)
		a := publish(t, sink, first, large, last)
		a.want(relay.Delivered, relay.RowFault, relay.Delivered)
		text := a.errs[1].Error()
		if !strings.Contains(text, "max.message.bytes") || !strings.Contains(text, "1048588") || !strings.Contains(text, topic) || strings.Contains(text, "xxx") {
			t.Errorf("the fault is %q, want topic, setting and limit named, and no payload shown", text)
		}
		if got, want := ids(t, broker, topic), []string{first.ID(), last.ID()}; !slices.Equal(got, want) {
			t.Errorf("topic holds %q, want %q", got, want)
		}
	})
}

// TestAnswersBelongToTheirEvents sends many events of random sizes and operations from several goroutines, some too large,
// and holds each answer against what is in the topic.
func TestAnswersBelongToTheirEvents(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		const senders, each, limit = 4, 1000, 20_000
		topic := broker.Topic(t, 5, map[string]string{"max.message.bytes": fmt.Sprint(limit)})
		sink := openReady(t, config(broker, topic), quick())
		seed := rand.Uint64()
		t.Logf("seed %d", seed)

		var sent [senders][]envelope.Event
		var got [senders]*answers
		var all sync.WaitGroup
		for n := range senders {
			random := rand.New(rand.NewPCG(seed, uint64(n)))
			versions := map[uuid.UUID]int{}
			operations := make([]uuid.UUID, 100)
			for i := range operations {
				operations[i] = uuid.New()
			}
			for range each {
				operation := operations[random.IntN(len(operations))]
				versions[operation]++
				size := random.IntN(1000)
				if random.IntN(100) == 0 {
					size = limit + random.IntN(limit)
				}
				sent[n] = append(sent[n], event(t, operation, versions[operation], size))
			}
			all.Go(func() { got[n] = publish(t, sink, sent[n]...) })
		}
		all.Wait()

		var delivered []string
		for n := range senders {
			refused := map[uuid.UUID]bool{}
			for i, err := range got[n].wait() {
				e := &sent[n][i]
				want := relay.Delivered
				if refused[e.OperationID] {
					want = relay.NotAttempted
				} else if len(e.Data) > limit {
					want, refused[e.OperationID] = relay.RowFault, true
				}
				if class := relay.ClassOf(err); class != want {
					t.Fatalf("event %d of sender %d was answered as %s (%v), want %s", i, n, class, err, want)
				}
				if want == relay.Delivered {
					delivered = append(delivered, e.ID())
				}
			}
		}
		checkTopic(t, broker, topic, delivered)
	})
}

// checkTopic checks that a topic holds exactly those events, once each, and those of each operation in order.
func checkTopic(t *testing.T, broker *kafkatest.Broker, topic string, want []string) {
	t.Helper()
	got := ids(t, broker, topic)
	last := map[string]int{}
	for _, id := range got {
		operation, text, _ := strings.Cut(id, ":")
		version := 0
		if _, err := fmt.Sscan(text, &version); err != nil {
			t.Fatal(err)
		}
		if version != last[operation]+1 {
			t.Errorf("state version %d of operation %s follows %d", version, operation, last[operation])
		}
		last[operation] = version
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("topic holds %d events, %d were answered as delivered, and they are not the same", len(got), len(want))
	}
}

// TestOperationStopsAtARefusedEvent, and others go on.
func TestOperationStopsAtARefusedEvent(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		topic := broker.Topic(t, 3, map[string]string{"max.message.bytes": "10000"})
		sink := openReady(t, config(broker, topic), quick())
		a, b := uuid.New(), uuid.New()
		events := []envelope.Event{
			event(t, a, 1, 10), event(t, b, 1, 10), event(t, a, 2, 20_000), event(t, a, 3, 10), event(t, b, 2, 10), event(t, a, 4, 20_000), event(t, b, 3, 10),
		}
		publish(t, sink, events...).want(relay.Delivered, relay.Delivered, relay.RowFault, relay.NotAttempted, relay.Delivered, relay.NotAttempted, relay.Delivered)
		checkTopic(t, broker, topic, []string{events[0].ID(), events[1].ID(), events[4].ID(), events[6].ID()})
	})
}

// TestNothingIsSentToATopicThatIsNotReady, however the events got here.
func TestNothingIsSentToATopicThatIsNotReady(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		there, missing := broker.Topic(t, 1, nil), kafkatest.Name("missing")
		tenant, err := envelope.Tenant("a")
		if err != nil {
			t.Fatal(err)
		}
		cfg := config(broker, "")
		cfg.Topic = func(s envelope.Scope) string {
			if s == tenant {
				return missing
			}
			return there
		}
		sink := openReady(t, cfg, quick())
		lost := event(t, uuid.New(), 1, 10)
		lost.Scope = tenant
		first := publish(t, sink, lost)
		good := event(t, uuid.New(), 1, 10)
		publish(t, sink, good).wantAll(relay.Delivered)
		first.wantAll(relay.NotAttempted)
		if got := ids(t, broker, there); !slices.Equal(got, []string{good.ID()}) {
			t.Errorf("topic holds %q, want the one event of its scope", got)
		}
	})
}

func TestRecordOnTheWire(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		topic := broker.Topic(t, 1, nil)
		sink := openReady(t, config(broker, topic), quick())
		e := event(t, uuid.New(), 3, 100)
		before := time.Now().Truncate(time.Millisecond)
		publish(t, sink, e).wantAll(relay.Delivered)
		after := time.Now()

		r := broker.Consume(t, topic, 1)[0]
		want := e.Record()
		if !bytes.Equal(r.Key, want.Key) || !bytes.Equal(r.Value, want.Value) {
			t.Errorf("key %q and value %q, want %q and %q", r.Key, r.Value, want.Key, want.Value)
		}
		headers := make([]envelope.Header, len(r.Headers))
		for i, h := range r.Headers {
			headers[i] = envelope.Header{Key: h.Key, Value: h.Value}
		}
		if got, want := fmt.Sprintf("%q", headers), fmt.Sprintf("%q", want.Headers); got != want {
			t.Errorf("headers are\n%s, want\n%s", got, want)
		}
		if r.Timestamp.Before(before) || r.Timestamp.After(after) {
			t.Errorf("timestamp is %v, want one from %v to %v: the time of sending", r.Timestamp, before, after)
		}
		if r.ProducerID < 0 {
			t.Error("the record has no producer id, so the producer is not idempotent")
		}
	})
}

func TestAllReplicasMustHaveIt(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Fake(t)
	topic := broker.Topic(t, 1, nil)
	acks := make(chan int16, 1)
	broker.Cluster.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		acks <- r.(*kmsg.ProduceRequest).Acks
		return nil, nil, false
	})
	publish(t, openReady(t, config(broker.Broker, topic), quick()), event(t, uuid.New(), 1, 10)).wantAll(relay.Delivered)
	if got := <-acks; got != -1 {
		t.Errorf("acks = %d, want -1, which is all", got)
	}
}

// TestCompression checks that each codec arrives as such.
func TestCompression(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Plain(t)
	for name, codec := range map[string]uint8{"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic := broker.Topic(t, 1, nil)
			cfg := config(broker, topic)
			cfg.Compression = name
			publish(t, openReady(t, cfg, quick()), event(t, uuid.New(), 1, 5000)).wantAll(relay.Delivered)
			if got := broker.Consume(t, topic, 1)[0].Attrs.CompressionType(); got != codec {
				t.Errorf("codec %d, want %d", got, codec)
			}
		})
	}
	cfg := config(broker, "topic")
	cfg.Compression = "brotli"
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "brotli") {
		t.Errorf("New with an unknown compression: %v", err)
	}
}

// TestRefusedBatch: nothing of it was written, and nothing behind it is sent before it.
func TestRefusedBatch(t *testing.T) {
	t.Parallel()
	for name, class := range map[string]relay.Class{
		"MESSAGE_TOO_LARGE": relay.NotAttempted, "TOPIC_AUTHORIZATION_FAILED": relay.Environment, "INVALID_RECORD": relay.Failed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := kafkatest.Fake(t)
			topic := broker.Topic(t, 1, nil)
			sink := openReady(t, config(broker.Broker, topic), quick())
			broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: brokerError(name)})
			operation := uuid.New()
			publish(t, sink, event(t, operation, 1, 10), event(t, operation, 2, 10), event(t, uuid.New(), 1, 10)).wantAll(class)
			waitFor(t, "the sink to be ready again", func() error { return sink.Ready(envelope.NonTenant()) })
			publish(t, sink, event(t, operation, 1, 10), event(t, operation, 2, 10)).wantAll(relay.Delivered)
			if got := len(ids(t, broker.Broker, topic)); got != 2 {
				t.Errorf("topic holds %d events, want 2", got)
			}
		})
	}
}

// TestNotEnoughReplicas: the client tries again until the delivery time-out, and no event of an operation passes another.
func TestNotEnoughReplicas(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Fake(t)
	topic := broker.Topic(t, 1, nil)
	cfg := config(broker.Broker, topic)
	cfg.DeliveryTimeout = impatient
	sink := openReady(t, cfg, quick())
	operation := uuid.New()
	events := []envelope.Event{event(t, operation, 1, 10), event(t, operation, 2, 10)}
	short := kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: 2}
	broker.Cluster.Fault(short)
	publish(t, sink, events...).wantAll(relay.Delivered)

	short.Count = -1
	fault := broker.Cluster.Fault(short)
	events[0], events[1] = event(t, operation, 3, 10), event(t, operation, 4, 10)
	publish(t, sink, events...).wantAll(relay.Environment)
	fault.Remove()
	wantReady(t, sink)
	publish(t, sink, events...).wantAll(relay.Delivered)
	var want []string
	for version := range 4 {
		want = append(want, fmt.Sprintf("%s:%d", operation, version+1))
	}
	checkTopic(t, broker.Broker, topic, want)
}
