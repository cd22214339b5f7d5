package faults_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/relayproc"
)

// leaderOf is the broker that leads a topic's first partition.
func leaderOf(t *testing.T, cluster *kafkatest.Own, topic string) int {
	t.Helper()
	partitions, err := partitions(t.Context(), cluster.Admin(t), topic)
	if err != nil {
		t.Fatal(err)
	}
	return int(partitions[0].Leader)
}

// awaitInSync waits until each partition has at least and at most so many replicas in sync.
func awaitInSync(s *scene, cluster *kafkatest.Own, least, most int) {
	s.T.Helper()
	admin := cluster.Admin(s.T)
	relayproc.Until(s.T, "replicas in sync", func() error {
		partitions, err := partitions(s.T.Context(), admin, s.Topic)
		for _, p := range partitions {
			if n := len(p.ISR); n < least || n > most {
				return fmt.Errorf("partition %d has %d, want %d to %d", p.Partition, n, least, most)
			}
		}
		return err
	})
}

// awaitAcks waits until a producer that has nothing to do with the relay gets an acknowledgement from each leader of a topic:
// a cluster that has just started takes its time, also when its replicas are in sync again.
func awaitAcks(s *scene, cluster *kafkatest.Own, topic string, partitions int) {
	s.T.Helper()
	began := time.Now()
	client := cluster.Client(s.T, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordDeliveryTimeout(2*time.Second))
	relayproc.Until(s.T, "acknowledgements", func() error {
		var records []*kgo.Record
		for p := range partitions {
			records = append(records, &kgo.Record{Topic: topic, Partition: int32(p), Value: []byte("are you there?")})
		}
		return client.ProduceSync(s.T.Context(), records...).FirstErr()
	})
	s.T.Logf("another producer got its first acknowledgements %s later", time.Since(began).Round(time.Millisecond))
}

// awaitLeaders waits until each partition is led by another broker than the one that has gone.
func awaitLeaders(s *scene, cluster *kafkatest.Own, gone int) {
	s.T.Helper()
	admin := cluster.Admin(s.T)
	relayproc.Until(s.T, "new leaders", func() error {
		partitions, err := partitions(s.T.Context(), admin, s.Topic)
		for _, p := range partitions {
			if p.Leader < 0 || int(p.Leader) == gone {
				return fmt.Errorf("partition %d is led by %d", p.Partition, p.Leader)
			}
		}
		return err
	})
}

func partitions(ctx context.Context, admin *kadm.Client, topic string) (kadm.PartitionDetails, error) {
	ctx, cancel := context.WithTimeout(ctx, relayproc.Patience)
	defer cancel()
	topics, err := admin.ListTopics(ctx, topic)
	if err == nil {
		err = topics[topic].Err
	}
	return topics[topic].Partitions, err
}

func kill(t *testing.T, cluster *kafkatest.Own, brokers ...int) {
	t.Helper()
	for _, id := range brokers {
		if err := cluster.Server.Kill(id); err != nil {
			t.Fatal(err)
		}
	}
}

// start starts brokers at once, and waits for them.
func start(t *testing.T, cluster *kafkatest.Own, brokers ...int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), relayproc.Patience)
	defer cancel()
	started := make(chan error, len(brokers))
	for _, id := range brokers {
		go func() { started <- cluster.Server.Start(ctx, id) }()
	}
	for range brokers {
		if err := <-started; err != nil {
			t.Fatal(fmt.Errorf("start broker: %w", err))
		}
	}
}
