package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
)

const (
	askTimeout = 30 * time.Second
	askAgain   = 250 * time.Millisecond
	// stallTimeout is how long nothing may come from topics that aren't read to their ends yet.
	stallTimeout = time.Minute
)

// topics reads the records of topics.
type topics struct {
	options []kgo.Opt
	names   []string
	stall   time.Duration
}

// span is what a partition held when it was asked: offsets from start, and below end.
type span struct{ start, end int64 }

// spans are by topic and partition.
type spans map[string][]span

// offsets are the starts of those that aren't empty, and how many these are.
func (s spans) offsets() (offsets map[string]map[int32]kgo.Offset, count int) {
	offsets = map[string]map[int32]kgo.Offset{}
	for topic, partitions := range s {
		offsets[topic] = map[int32]kgo.Offset{}
		for partition, span := range partitions {
			if span.start < span.end {
				offsets[topic][int32(partition)] = kgo.NewOffset().At(span.start)
				count++
			}
		}
	}
	return offsets, count
}

// size is about how many records the topics hold.
func (t *topics) size(ctx context.Context) (records int64, err error) {
	all, _, err := t.ask(ctx)
	for _, partitions := range all {
		for _, s := range partitions {
			records += s.end - s.start
		}
	}
	return records, err
}

// read hands over the records of a part that are in the topics now, with the history of their topic. Only committed ones
// count, so it waits for transactions that are open below the ends. The record is used again for the next.
func (t *topics) read(ctx context.Context, p part, take func(*history, *record) error) (map[string]*history, error) {
	all, histories, err := t.ask(ctx)
	if err != nil {
		return nil, err
	}
	offsets, open := all.offsets()
	if open == 0 {
		return histories, nil
	}
	client, err := kgo.NewClient(append(slices.Clone(t.options),
		kgo.ConsumePartitions(offsets),
		// What is deleted while it is read would look lost.
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // the last offset may be that of a transaction's end
		// Few bytes at once, since records are much larger when unpacked.
		kgo.MaxConcurrentFetches(1), kgo.FetchMaxBytes(512<<10), kgo.FetchMaxPartitionBytes(64<<10),
		kgo.FetchMaxWait(500*time.Millisecond),
	)...)
	if err != nil {
		return nil, fmt.Errorf("settings of Kafka: %w", err)
	}
	defer client.Close()
	r := &reading{client: client, spans: all, open: open, histories: histories, part: p, take: take}
	for r.open > 0 {
		if err := r.poll(ctx, t.stall); err != nil {
			return nil, err
		}
	}
	return histories, nil
}

// ask gives what the topics hold, and their histories as far as the cluster knows them.
func (t *topics) ask(ctx context.Context) (spans, map[string]*history, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, fmt.Errorf("no answer from Kafka in %v", askTimeout))
	defer cancel()
	client, err := kgo.NewClient(t.options...)
	if err != nil {
		return nil, nil, fmt.Errorf("settings of Kafka: %w", err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	starts, err := t.list(ctx, admin.ListStartOffsets)
	if err != nil {
		return nil, nil, fmt.Errorf("ask for the topics' starts: %w", explain(ctx, err))
	}
	ends, err := t.list(ctx, admin.ListEndOffsets) // of the log, not of its committed part
	if err != nil {
		return nil, nil, fmt.Errorf("ask for the topics' ends: %w", explain(ctx, err))
	}
	all, histories := spans{}, map[string]*history{}
	for topic, partitions := range starts {
		all[topic] = make([]span, len(partitions))
		h := newHistory(topic, len(partitions))
		for partition, start := range partitions {
			all[topic][partition] = span{start.Offset, ends[topic][partition].Offset}
			h.trimmed = h.trimmed || start.Offset > 0
		}
		histories[topic] = h
	}
	return all, histories, t.askPolicies(ctx, admin, histories)
}

// askPolicies finds out which topics are compacted.
func (t *topics) askPolicies(ctx context.Context, admin *kadm.Client, histories map[string]*history) error {
	configs, err := admin.DescribeTopicConfigs(ctx, t.names...)
	if err != nil {
		return fmt.Errorf("ask for the topics' settings: %w", explain(ctx, err))
	}
	for topic, h := range histories {
		config, err := configs.On(topic, nil)
		if err = errors.Join(err, config.Err); err != nil {
			return fmt.Errorf("ask for the settings of topic %q, which needs DESCRIBE_CONFIGS: %w", topic, err)
		}
		for _, c := range config.Configs {
			h.compacted = h.compacted || c.Key == "cleanup.policy" && c.Value != nil && strings.Contains(*c.Value, "compact")
		}
	}
	return nil
}

// list asks for offsets of the topics, again while a partition has no leader that knows them.
func (t *topics) list(ctx context.Context, ask func(context.Context, ...string) (kadm.ListedOffsets, error)) (kadm.ListedOffsets, error) {
	ticker := time.NewTicker(askAgain)
	defer ticker.Stop()
	for {
		offsets, err := listed(ask(ctx, t.names...))
		if !kerr.IsRetriable(err) || errors.Is(err, kerr.UnknownTopicOrPartition) {
			return offsets, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-ticker.C:
		}
	}
}

// listed passes offsets on if all are known.
func listed(offsets kadm.ListedOffsets, err error) (kadm.ListedOffsets, error) {
	if err != nil {
		return nil, err
	}
	offsets.Each(func(o kadm.ListedOffset) {
		if o.Err != nil && err == nil {
			err = fmt.Errorf("topic %q: %w", o.Topic, o.Err)
		}
	})
	return offsets, err
}

// explain puts the cause of an ended context before an error.
func explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}

// reading is the state of one reading.
type reading struct {
	client    *kgo.Client
	spans     spans
	open      int // partitions that aren't read to their ends
	histories map[string]*history
	part      part
	take      func(*history, *record) error
	record    record
	headers   []envelope.Header
}

// poll takes what comes next.
func (r *reading) poll(ctx context.Context, stall time.Duration) error {
	wait, cancel := context.WithTimeout(ctx, stall)
	defer cancel()
	fetches := r.client.PollFetches(wait)
	if err := ctx.Err(); err != nil {
		return err
	}
	if wait.Err() != nil {
		return r.stalled(stall)
	}
	for _, e := range fetches.Errors() {
		return fmt.Errorf("read partition %d of topic %q: %w", e.Partition, e.Topic, e.Err)
	}
	for it := fetches.RecordIter(); !it.Done(); {
		if err := r.next(it.Next()); err != nil {
			return err
		}
	}
	return nil
}

// next takes a record.
func (r *reading) next(k *kgo.Record) error {
	s := &r.spans[k.Topic][k.Partition]
	if s.start >= s.end {
		return nil // it is read to its end
	}
	s.start = k.Offset + 1
	if s.start >= s.end {
		r.open--
		r.client.PauseFetchPartitions(map[string][]int32{k.Topic: {k.Partition}})
	}
	if k.Offset >= s.end || k.Attrs.IsControl() {
		return nil
	}
	h := r.histories[k.Topic]
	h.note(k.Partition, k.Timestamp, k.Key)
	if !r.part.holds(k.Key) {
		return nil
	}
	r.headers = r.headers[:0]
	for _, header := range k.Headers {
		r.headers = append(r.headers, envelope.Header{Key: header.Key, Value: header.Value})
	}
	r.record.place = Place{k.Topic, k.Partition, k.Offset}
	r.record.at = k.Timestamp
	r.record.event, r.record.fault = envelope.Parse(envelope.Record{Key: k.Key, Value: k.Value, Headers: r.headers})
	return r.take(h, &r.record)
}

// stalled says which partition nothing comes from.
func (r *reading) stalled(stall time.Duration) error {
	for topic, partitions := range r.spans {
		for partition, s := range partitions {
			if s.start < s.end {
				return fmt.Errorf("nothing came for %v from partition %d of topic %q at offset %d of %d: "+
					"a producer's transaction may be open there", stall, partition, topic, s.start, s.end)
			}
		}
	}
	return nil
}
