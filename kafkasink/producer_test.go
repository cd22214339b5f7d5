package kafkasink

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"outboxrelay/envelope"
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
