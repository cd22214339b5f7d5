package kafkasink

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/relay"
)

//go:embed testdata/java-partitions.txt
var javaPartitions string

// TestPartitionsAreThoseOfJavaClients, so that a topic may be written by both, and joined with topics that Java writes.
func TestPartitionsAreThoseOfJavaClients(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		for column, partitions := range []int{12, 7} {
			topic := broker.Topic(t, partitions, nil)
			want := map[string]int32{}
			var events []envelope.Event
			for line := range strings.Lines(javaPartitions) {
				if strings.HasPrefix(line, "#") {
					continue
				}
				var key string
				var java [2]int32
				if _, err := fmt.Sscan(line, &key, &java[0], &java[1]); err != nil {
					t.Fatal(err)
				}
				want[key] = java[column]
				events = append(events, event(t, uuid.MustParse(key), 1, 10))
			}
			publish(t, openReady(t, config(broker, topic), quick()), events...).wantAll(relay.Delivered)
			records := broker.All(t, topic)
			if len(records) != 1000 {
				t.Fatalf("%d records, want 1000", len(records))
			}
			for _, r := range records {
				if r.Partition != want[string(r.Key)] {
					t.Errorf("key %s is in partition %d of %d, Java's producer chooses %d", r.Key, r.Partition, partitions, want[string(r.Key)])
				}
			}
		}
	})
}
