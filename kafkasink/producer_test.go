package kafkasink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkaserver"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/relay"
)

// TestBrokerForgetsTheProducer: its sequence numbers are unknown, or not what the broker expects. The events of an operation
// come in order all the same, now or when they are sent again, and the sink needs no restart.
func TestBrokerForgetsTheProducer(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"UNKNOWN_PRODUCER_ID", "OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH", "INVALID_PRODUCER_ID_MAPPING"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := kafkatest.Fake(t)
			topic := broker.Topic(t, 1, nil)
			sink := openReady(t, config(broker.Broker, topic), quick())
			operation := uuid.New()
			publish(t, sink, event(t, operation, 1, 10)).wantAll(relay.Delivered)
			fault := broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: brokerError(name)})
			events := []envelope.Event{event(t, operation, 2, 10), event(t, operation, 3, 10)}
			for _, err := range publish(t, sink, events...).wait() {
				if class := relay.ClassOf(err); class != relay.Delivered && class != relay.Environment {
					t.Errorf("answered as %s: %v", class, err)
				}
				if err == nil {
					events = events[1:]
				}
			}
			if fault.Hits() == 0 {
				t.Error("the broker refused nothing")
			}
			wantReady(t, sink)
			publish(t, sink, append(events, event(t, operation, 4, 10))...).wantAll(relay.Delivered)
			checkTopic(t, broker.Broker, topic, versions(operation, 1, 4))
		})
	}
}

// versions gives the ids of an operation's events.
func versions(operation uuid.UUID, first, last int) (ids []string) {
	for version := first; version <= last; version++ {
		ids = append(ids, fmt.Sprintf("%s:%d", operation, version))
	}
	return ids
}

// TestTopicIsTruncated: somebody deletes all records, and what the broker knew of the producer with them.
func TestTopicIsTruncated(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		topic := broker.Topic(t, 1, nil)
		sink := openReady(t, config(broker, topic), quick())
		for range 3 {
			publish(t, sink, event(t, uuid.New(), 1, 10), event(t, uuid.New(), 1, 10)).wantAll(relay.Delivered)
			ends, err := broker.Admin(t).ListEndOffsets(t.Context(), topic)
			if err != nil {
				t.Fatal(err)
			}
			deleted, err := broker.Admin(t).DeleteRecords(t.Context(), ends.Offsets())
			if err == nil {
				err = deleted.Error()
			}
			if err != nil {
				t.Fatal(err)
			}
			e := event(t, uuid.New(), 1, 10)
			publish(t, sink, e).wantAll(relay.Delivered)
			if got := ids(t, broker, topic); !slices.Equal(got, []string{e.ID()}) {
				t.Errorf("topic holds %q, want %s", got, e.ID())
			}
		}
	})
}

// TestCancelledPublishHidesNoEvent: a record that is cancelled under way gives its sequence number to the next, which the
// broker takes for a duplicate and drops with a success. So the end of a caller's context cancels nothing.
func TestCancelledPublishHidesNoEvent(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Fake(t)
	topic := broker.Topic(t, 1, nil)
	sink := openReady(t, config(broker.Broker, topic), quick())
	release := swallow(t, broker, 1)
	operation := uuid.New()
	ctx, cancel := context.WithCancel(t.Context())
	first := &answers{t: t, errs: make([]error, 1), got: make([]bool, 1), open: 1, all: make(chan struct{})}
	sink.Publish(ctx, []envelope.Event{event(t, operation, 1, 10)}, first.answer)
	cancel()
	second := publish(t, sink, event(t, operation, 2, 10))
	if first.unanswered() != 1 {
		t.Error("the end of its context has answered an event whose outcome nobody knows")
	}
	release()
	first.wantAll(relay.Delivered)
	second.wantAll(relay.Delivered)
	checkTopic(t, broker.Broker, topic, versions(operation, 1, 2))
}

// TestAddedPartitionsAreUsed: a topic gets more partitions under a running sink. Nothing fails.
func TestAddedPartitionsAreUsed(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		topic := broker.Topic(t, 1, nil)
		sink := openReady(t, config(broker, topic), quick())
		publish(t, sink, event(t, uuid.New(), 1, 10)).wantAll(relay.Delivered)
		grown, err := broker.Admin(t).UpdatePartitions(t.Context(), 6, topic)
		if err == nil {
			err = grown.Error()
		}
		if err != nil {
			t.Fatal(err)
		}
		used := map[int32]bool{}
		waitFor(t, "all six partitions to be used", func() error {
			sink.current().ForceMetadataRefresh() // the client looks once a minute by itself
			var events []envelope.Event
			for range 20 {
				events = append(events, event(t, uuid.New(), 1, 10))
			}
			publish(t, sink, events...).wantAll(relay.Delivered)
			for _, r := range broker.All(t, topic) {
				used[r.Partition] = true
			}
			if len(used) != 6 {
				return fmt.Errorf("%d are", len(used))
			}
			return nil
		})
	})
}

// TestForgottenProducersKeepOrder: a broker that has forgotten an idle producer takes whatever it sends first. The limit was
// lowered since the sink has looked, so the first of two events is refused, and the second, already under way, must not be taken.
func TestForgottenProducersKeepOrder(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Server(t, kafkaserver.Options{Settings: []string{
		"producer.id.expiration.ms=1000", "producer.id.expiration.check.interval.ms=200",
	}})
	topic := broker.Topic(t, 1, map[string]string{"max.message.bytes": "1000000"})
	pace := quick()
	pace.settings, pace.life = time.Hour, 500*time.Millisecond // shorter than the broker remembers, as the usual ones are
	sink := openReady(t, config(broker.Broker, topic), pace)
	first := event(t, uuid.New(), 1, 10)
	publish(t, sink, first).wantAll(relay.Delivered)
	admin, partition := broker.Admin(t), kadm.TopicsSet{}
	partition.Add(topic, 0)
	waitFor(t, "the broker to forget the producer", func() error {
		known, err := admin.DescribeProducers(t.Context(), partition)
		if n := len(known.SortedProducers()); err == nil && n > 0 {
			err = fmt.Errorf("it knows %d", n)
		}
		return err
	})
	set(t, broker.Broker, topic, "max.message.bytes", "500000")
	waitFor(t, "the lower limit", func() error {
		read, err := readTopics(t.Context(), sink.current().Client, []string{topic})
		if err == nil && read[topic].maxMessage != 500_000 {
			err = errors.New("it is as before")
		}
		return err
	})
	operation := uuid.New()
	publish(t, sink, event(t, operation, 1, 900_000), event(t, operation, 2, 200_000)).wait()
	if got := ids(t, broker.Broker, topic); !slices.Equal(got, []string{first.ID()}) {
		t.Errorf("the topic holds %q, want %s alone", got, first.ID())
	}
}
