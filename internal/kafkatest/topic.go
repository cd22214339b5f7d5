package kafkatest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// brokersDefault leaves the number of a topic's replicas to the broker.
const brokersDefault = -1

// Topic makes a topic with a name that no other has, and returns the name once every partition can be used. Configs, such as
// cleanup.policy, may be nil. The topic is deleted when the test ends.
func (b *Broker) Topic(t testing.TB, partitions int, configs map[string]string) string {
	t.Helper()
	topic := Name("topic")
	b.CreateTopic(t, topic, partitions, configs)
	return topic
}

// Name returns a name that nothing else has, for a topic, a group or a transactional id. It begins with prefix.
func Name(prefix string) string { return prefix + "-" + strings.ToLower(rand.Text()[:12]) }

// CreateTopic makes a topic with a given name, as Topic does.
func (b *Broker) CreateTopic(t testing.TB, topic string, partitions int, configs map[string]string) {
	t.Helper()
	ctx, cancel := step()
	defer cancel()
	admin := b.Admin(t)
	values := map[string]*string{}
	for name, value := range configs {
		values[name] = &value
	}
	var err error
	await(t, ctx, "a broker", func() error {
		if _, err = admin.CreateTopic(ctx, int32(partitions), brokersDefault, values, topic); errors.Is(err, kerr.InvalidReplicationFactor) {
			return err // none is there: on a busy machine one that stood still for seconds has to register anew
		}
		return nil
	})
	if err != nil {
		t.Fatalf("kafkatest: create topic %s: %v", topic, err)
	}
	if !b.own {
		t.Cleanup(func() { deleteTopic(t, admin, topic) })
	}
	await(t, ctx, "topic "+topic, func() error { return usable(ctx, admin, topic, partitions) })
}

func deleteTopic(t testing.TB, admin *kadm.Client, topic string) {
	ctx, cancel := step()
	defer cancel()
	if _, err := admin.DeleteTopic(ctx, topic); err != nil {
		t.Errorf("kafkatest: delete topic %s: %v", topic, err)
	}
}

// usable asks the leader of every partition for its end: a leader that metadata name may not know of it yet.
func usable(ctx context.Context, admin *kadm.Client, topic string, partitions int) error {
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err == nil && len(ends[topic]) != partitions {
		err = fmt.Errorf("%d of %d partitions are there", len(ends[topic]), partitions)
	}
	return err
}

// await calls done until it returns nil or ctx ends, which fails the test with the last error.
func await(t testing.TB, ctx context.Context, what string, done func() error) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := done()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("kafkatest: %s is not ready: %v", what, err)
		case <-ticker.C:
		}
	}
}
