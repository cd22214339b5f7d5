package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Consume reads a topic from its beginning and returns the first n committed records that come, in order within a partition. It
// fails if they do not come within a minute. Options come last, such as kgo.FetchIsolationLevel(kgo.ReadUncommitted()).
func (b *Broker) Consume(t testing.TB, topic string, n int, options ...kgo.Opt) []*kgo.Record {
	t.Helper()
	ctx, cancel := step()
	defer cancel()
	client := b.reader(t, append([]kgo.Opt{kgo.ConsumeTopics(topic)}, options...)...)
	var records []*kgo.Record
	for len(records) < n {
		records = append(records, b.poll(t, ctx, client, topic)...)
	}
	return records[:n]
}

// All reads the committed records that a topic holds now, in order within a partition. What transactions that are still
// open have written, and what came behind it, is left out.
func (b *Broker) All(t testing.TB, topic string) []*kgo.Record {
	t.Helper()
	ctx, cancel := step()
	defer cancel()
	missing := b.span(t, ctx, topic)
	from := map[string]map[int32]kgo.Offset{topic: {}}
	for partition := range missing {
		from[topic][partition] = kgo.NewOffset().AtStart()
	}
	// The last offset may be that of a transaction's end, which is no record to return.
	client := b.reader(t, kgo.ConsumePartitions(from), kgo.KeepControlRecords())
	var records []*kgo.Record
	for len(missing) > 0 {
		for _, record := range b.poll(t, ctx, client, topic) {
			end, open := missing[record.Partition]
			if open && record.Offset < end && !record.Attrs.IsControl() {
				records = append(records, record)
			}
			if record.Offset >= end-1 {
				delete(missing, record.Partition)
			}
		}
	}
	return records
}

// AwaitCommitted waits until no transaction is open in a topic. Brokers answer that one is committed a moment before consumers
// see it.
func (b *Broker) AwaitCommitted(t testing.TB, topic string) {
	t.Helper()
	ctx, cancel := step()
	defer cancel()
	admin := b.Admin(t)
	await(t, ctx, "end of transactions in topic "+topic, func() error {
		ends, err := admin.ListEndOffsets(ctx, topic)
		committed, also := admin.ListCommittedOffsets(ctx, topic)
		if err = errors.Join(err, also, ends.Error(), committed.Error()); err != nil {
			return err
		}
		ends.Each(func(end kadm.ListedOffset) {
			if stable, _ := committed.Lookup(topic, end.Partition); stable.Offset < end.Offset {
				err = fmt.Errorf("partition %d is stable up to %d of %d", end.Partition, stable.Offset, end.Offset)
			}
		})
		return err
	})
}

// span returns the end of each partition of topic that is not empty.
func (b *Broker) span(t testing.TB, ctx context.Context, topic string) map[int32]int64 {
	t.Helper()
	admin := b.Admin(t)
	starts := offsets(t, ctx, "start of topic "+topic, topic, admin.ListStartOffsets)
	ends := offsets(t, ctx, "end of topic "+topic, topic, admin.ListCommittedOffsets)
	span := map[int32]int64{}
	ends.Each(func(end kadm.ListedOffset) {
		if start, known := starts.Lookup(topic, end.Partition); known && start.Offset < end.Offset {
			span[end.Partition] = end.Offset
		}
	})
	return span
}

// offsets are what ask gives once every partition has a leader that knows them.
func offsets(t testing.TB, ctx context.Context, what, topic string, ask func(context.Context, ...string) (kadm.ListedOffsets, error)) (offsets kadm.ListedOffsets) {
	t.Helper()
	await(t, ctx, what, func() (err error) {
		if offsets, err = ask(ctx, topic); err == nil {
			err = offsets.Error()
		}
		return err
	})
	return offsets
}

func (b *Broker) reader(t testing.TB, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	return b.Client(t, append([]kgo.Opt{
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}, options...)...)
}

func (b *Broker) poll(t testing.TB, ctx context.Context, client *kgo.Client, topic string) []*kgo.Record {
	t.Helper()
	fetches := client.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		t.Fatalf("kafkatest: read topic %s: %v", topic, err)
	}
	return fetches.Records()
}
