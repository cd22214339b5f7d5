package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/relay"
)

const partitions = 12

// topic is one on the stage's broker.
type topic struct {
	name   string
	ledger string // that of the relay that writes to it exactly once; empty for at least once
	stage  *stage
}

// topicMaker makes a topic.
type topicMaker func(context.Context) (topic, error)

// newTopic makes an empty topic and returns when the broker serves each of its partitions.
func (s *stage) newTopic(ctx context.Context) (topic, error) {
	t := topic{name: s.newName("events"), stage: s}
	if _, err := s.admin.CreateTopic(ctx, partitions, 1, nil, t.name); err != nil {
		return t, fmt.Errorf("create topic: %w", err)
	}
	return t, poll(ctx, time.Minute, func(ctx context.Context) error {
		_, err := t.records(ctx)
		return err
	})
}

// newExactTopic makes an empty topic and a ledger, which a relay needs to write to it exactly once.
func (s *stage) newExactTopic(ctx context.Context) (topic, error) {
	t, err := s.newTopic(ctx)
	if err != nil {
		return t, err
	}
	t.ledger = t.name + ".ledger"
	compact := "compact"
	if _, err := s.admin.CreateTopic(ctx, relay.SlotsPerInstance, 1, map[string]*string{"cleanup.policy": &compact}, t.ledger); err != nil {
		return t, fmt.Errorf("create ledger: %w", err)
	}
	return t, nil
}

// records is how many offsets of the topic are taken, by the broker's count: as many as it has records, and in exactly-once
// mode one more for each transaction and partition.
func (t topic) records(ctx context.Context) (n int64, err error) {
	ends, err := t.stage.admin.ListEndOffsets(ctx, t.name)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("count records: %w", err)
	}
	if len(ends[t.name]) != partitions {
		return 0, fmt.Errorf("topic %s has %d of %d partitions", t.name, len(ends[t.name]), partitions)
	}
	for _, end := range ends[t.name] {
		n += end.Offset
	}
	return n, nil
}

// await waits until n offsets of the topic are taken.
func (t topic) await(ctx context.Context, n int) error {
	return poll(ctx, patience, func(ctx context.Context) error {
		found, err := t.records(ctx)
		if err == nil && found < int64(n) {
			err = fmt.Errorf("%d of %d records are there", found, n)
		}
		return err
	})
}

// expect fails unless the topic holds exactly n records, of transactions that were committed if there are any.
func (t topic) expect(ctx context.Context, n int) error {
	count := t.records
	if t.ledger != "" {
		count = t.committed
	}
	found, err := count(ctx)
	if err == nil && found != int64(n) {
		err = fmt.Errorf("the topic holds %d records instead of %d", found, n)
	}
	return err
}

// committed reads the topic to its present end, and counts the records of committed transactions.
func (t topic) committed(ctx context.Context) (n int64, err error) {
	ends, err := t.stage.admin.ListCommittedOffsets(ctx, t.name)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("count records: %w", err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(t.stage.kafka.Addrs()...), kgo.ConsumeTopics(t.name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return 0, err
	}
	defer client.Close()
	left := map[int32]int64{}
	ends.Each(func(end kadm.ListedOffset) {
		if end.Offset > 0 {
			left[end.Partition] = end.Offset
		}
	})
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return 0, fmt.Errorf("count records: %w", err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				n++
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return n, nil
}

func (t topic) drop(ctx context.Context) error {
	topics := []string{t.name}
	if t.ledger != "" {
		topics = append(topics, t.ledger)
	}
	_, err := t.stage.admin.DeleteTopics(ctx, topics...)
	return err
}

// producer is a client that sends as the relay does.
func (t topic) producer() (*kgo.Client, error) {
	return kgo.NewClient(
		kgo.SeedBrokers(t.stage.kafka.Addrs()...),
		kgo.DefaultProduceTopic(t.name),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		kgo.MetadataMinAge(250*time.Millisecond),
	)
}
