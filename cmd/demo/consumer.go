package main

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
)

// delivery is one record of the topic.
type delivery struct {
	partition int32
	offset    int64
	record    envelope.Record
	event     envelope.Event
	malformed error // the record is no event
}

// transition is what the record tells of.
func (d *delivery) transition() transition {
	tenant, _ := d.event.Scope.Tenant()
	return transition{tenant: tenant, operation: d.event.OperationID, version: d.event.StateVersion}
}

// same tells whether two records are the same event to the byte.
func (d *delivery) same(other *delivery) bool {
	return d.partition == other.partition && bytes.Equal(d.record.Key, other.record.Key) &&
		bytes.Equal(d.record.Value, other.record.Value) &&
		slices.EqualFunc(d.record.Headers, other.record.Headers, func(a, b envelope.Header) bool {
			return a.Key == b.Key && bytes.Equal(a.Value, b.Value)
		})
}

// consumer reads the whole topic, as somebody who depends on the events would.
type consumer struct {
	client *kgo.Client
	ended  sync.WaitGroup

	mu   sync.Mutex
	read []*delivery
}

// consume starts to read. Each record is kept, and given to arrived in the order of its partition. Close it after use.
func consume(brokers []string, topic string, arrived func(*delivery)) (*consumer, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.MetadataMinAge(100*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	c := &consumer{client: client}
	c.ended.Go(func() {
		for {
			// Errors are left to the client, which tries again; whoever waits for a record has a deadline.
			fetches := client.PollFetches(context.Background())
			if fetches.IsClientClosed() {
				return
			}
			fetches.EachRecord(func(r *kgo.Record) {
				d := parse(r)
				c.keep(d)
				arrived(d)
			})
		}
	})
	return c, nil
}

func parse(r *kgo.Record) *delivery {
	d := &delivery{partition: r.Partition, offset: r.Offset, record: envelope.Record{Key: r.Key, Value: r.Value}}
	for _, h := range r.Headers {
		d.record.Headers = append(d.record.Headers, envelope.Header{Key: h.Key, Value: h.Value})
	}
	d.event, d.malformed = envelope.Parse(d.record)
	return d
}

func (c *consumer) keep(d *delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = append(c.read, d)
}

// all is every record so far, in the order in which they were read.
func (c *consumer) all() []*delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.read)
}

func (c *consumer) close() {
	c.client.Close()
	c.ended.Wait()
}
