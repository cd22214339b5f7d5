package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const partitions = 12

// topic is one on the stage's broker.
type topic struct {
	name  string
	stage *stage
}

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

// records is how many records the topic holds, by the broker's count.
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

// await waits until the topic holds n records. More than that are an error.
func (t topic) await(ctx context.Context, n int) error {
	err := poll(ctx, patience, func(ctx context.Context) error {
		found, err := t.records(ctx)
		if err == nil && found < int64(n) {
			err = fmt.Errorf("%d of %d records are there", found, n)
		}
		return err
	})
	if err != nil {
		return err
	}
	return t.expect(ctx, n)
}

// expect fails unless the topic holds exactly n records.
func (t topic) expect(ctx context.Context, n int) error {
	found, err := t.records(ctx)
	if err == nil && found != int64(n) {
		err = fmt.Errorf("the topic holds %d records instead of %d", found, n)
	}
	return err
}

func (t topic) drop(ctx context.Context) error {
	_, err := t.stage.admin.DeleteTopic(ctx, t.name)
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
