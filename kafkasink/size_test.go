package kafkasink

import (
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/relay"
)

func TestVarintSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 1, 63: 1, 64: 2, 8191: 2, 8192: 3, 1<<20 - 1: 3, 1 << 20: 4, 1<<27 - 1: 4, 1 << 27: 5, 1<<31 - 1: 5} {
		if got := varintSize(n); got != want {
			t.Errorf("varintSize(%d) = %d, want %d", n, got, want)
		}
	}
}

// TestBatchSizeIsThatOnTheWire compares it with what a broker receives.
func TestBatchSizeIsThatOnTheWire(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Fake(t)
	topic := broker.Topic(t, 1, map[string]string{"max.message.bytes": "10000000"})
	sent := watchBatches(broker)
	sink := openReady(t, config(broker.Broker, topic), quick())
	check := func(e envelope.Event) {
		publish(t, sink, e).wantAll(relay.Delivered)
		if got, want := batchSize(e.Record()), sent.last(); got != want {
			t.Errorf("batchSize of an event with %d bytes of data = %d, the broker got %d", len(e.Data), got, want)
		}
	}
	// Around each size at which a length in the record takes another byte.
	for _, size := range []int{0, 63, 64, 65, 8000, 8191, 8192, 1<<20 - 600, 1<<20 - 1, 1 << 20, 1<<20 + 1} {
		check(event(t, uuid.New(), 1, size))
	}
	rapid.Check(t, func(rt *rapid.T) {
		tenant, err := envelope.Tenant(rapid.StringMatching(`[a-z /é]{1,80}`).Draw(rt, "tenant"))
		if err != nil {
			rt.Fatal(err)
		}
		e := event(t, uuid.New(), rapid.IntMin(1).Draw(rt, "version"), rapid.IntRange(0, 20_000).Draw(rt, "size"))
		e.Scope = tenant
		check(e)
	})
}

// batches are those that brokers were sent.
type batches struct {
	mu    sync.Mutex
	sizes []int
}

func watchBatches(broker *kafkatest.Faked) *batches {
	b := &batches{}
	broker.Cluster.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		broker.Cluster.KeepControl()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, topic := range r.(*kmsg.ProduceRequest).Topics {
			for _, p := range topic.Partitions {
				b.sizes = append(b.sizes, len(p.Records))
			}
		}
		return nil, nil, false
	})
	return b
}

func (b *batches) last() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sizes[len(b.sizes)-1]
}

// TestLargestEvent: what the sink sends, real brokers take, alone and in full batches.
func TestLargestEvent(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Plain(t)
	for name, limit := range map[string]struct {
		config string
		bytes  int
	}{"small": {"10000", 10_000}, "two bytes": {"16000", 16_000}, "usual": {"1048588", 1_048_588}, "large": {"3000000", 3_000_000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic := broker.Topic(t, 1, map[string]string{"max.message.bytes": limit.config})
			sink := openReady(t, config(broker, topic), quick())
			most := limit.bytes - lengthSize
			// Twice: the client counts in another way once it has had an answer.
			for range 2 {
				publish(t, sink, eventOfBatch(t, uuid.New(), 1, most)).wantAll(relay.Delivered)
			}
			publish(t, sink,
				eventOfBatch(t, uuid.New(), 1, most+1), eventOfBatch(t, uuid.New(), 1, limit.bytes+1), eventOfBatch(t, uuid.New(), 1, most-1),
			).want(relay.RowFault, relay.RowFault, relay.Delivered)

			var many []envelope.Event
			for size := 0; size < 3*limit.bytes; size += len(many[len(many)-1].Data) {
				many = append(many, event(t, uuid.New(), 1, 1000+len(many)%7))
			}
			publish(t, sink, many...).wantAll(relay.Delivered)
		})
	}
}

// TestBrokersJudgeByBatchSize checks what max.message.bytes is about, with a client that sends more than the sink does.
func TestBrokersJudgeByBatchSize(t *testing.T) {
	t.Parallel()
	const limit = 100_000
	broker := kafkatest.Plain(t)
	topic := broker.Topic(t, 1, map[string]string{"max.message.bytes": strconv.Itoa(limit)})
	client := broker.Client(t, kgo.ProducerBatchMaxBytes(2*limit), kgo.ProducerBatchCompression(kgo.NoCompression()))
	for size, want := range map[int]error{limit: nil, limit + 1: kerr.MessageTooLarge} {
		e := eventOfBatch(t, uuid.New(), 1, size)
		err := client.ProduceSync(t.Context(), record(topic, e.Record())).FirstErr()
		if !errors.Is(err, want) {
			t.Errorf("batch of %d bytes for a topic that takes %d: %v, want %v", size, limit, err, want)
		}
	}
}
