package main

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
)

func TestDelays(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	c := &consumer{arrivals: map[string]time.Time{}}
	for id, ms := range map[string]int{"warm-up": 10, "first": 130, "second": 250} {
		c.take(fetched(id), at(ms))
	}
	commits := map[string]time.Time{"warm-up": at(0), "first": at(100), "second": at(200)}
	if err := c.await(t.Context(), commits); err != nil {
		t.Fatal(err)
	}
	delays := c.delays(commits, at(100))
	if len(delays) != 2 || percentile(delays, 1) != 30*time.Millisecond || percentile(delays, 100) != 50*time.Millisecond {
		t.Errorf("delays = %v, want 30 and 50 ms", delays)
	}
	c.take(fetched("first"), at(300))
	if err := c.await(t.Context(), commits); err == nil {
		t.Error("an event that came twice was not noticed")
	}
}

// fetched is what a poll returns for one event.
func fetched(id string) kgo.Fetches {
	record := &kgo.Record{Headers: []kgo.RecordHeader{{Key: envelope.HeaderID, Value: []byte(id)}}}
	return kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "events", Partitions: []kgo.FetchPartition{{Records: []*kgo.Record{record}}}}}}}
}
