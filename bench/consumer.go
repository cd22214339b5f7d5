package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
)

// consumer reads a topic and remembers when its events came.
type consumer struct {
	client *kgo.Client
	ended  sync.WaitGroup
	stop   context.CancelFunc

	mu       sync.Mutex
	arrivals map[string]time.Time // by event id
	records  int
}

// newConsumer begins to read. Stop it with close.
func (t topic) newConsumer(ctx context.Context) (*consumer, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(t.stage.kafka.Addrs()...),
		kgo.ConsumeTopics(t.name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	c := &consumer{client: client, stop: stop, arrivals: map[string]time.Time{}}
	c.ended.Go(func() { c.read(ctx) })
	return c, nil
}

func (c *consumer) read(ctx context.Context) {
	for ctx.Err() == nil {
		fetches := c.client.PollFetches(ctx)
		c.take(fetches, time.Now())
	}
}

func (c *consumer) take(fetches kgo.Fetches, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fetches.EachRecord(func(r *kgo.Record) {
		c.records++
		for _, header := range r.Headers {
			if header.Key == envelope.HeaderID {
				c.arrivals[string(header.Value)] = now
			}
		}
	})
}

// await waits for all events that were committed. None may have come twice.
func (c *consumer) await(ctx context.Context, commits map[string]time.Time) error {
	err := poll(ctx, time.Minute, func(context.Context) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		for id := range commits {
			if _, came := c.arrivals[id]; !came {
				return fmt.Errorf("event %s did not come; %d of %d did", id, len(c.arrivals), len(commits))
			}
		}
		return nil
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.records != len(commits) {
		err = errors.New("events came that were not written, or came twice")
	}
	return err
}

func (c *consumer) close() {
	c.stop()
	c.ended.Wait()
	c.client.Close()
}
