package relayproc

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
)

// Tenant is a tenant's scope.
func Tenant(t testing.TB, id string) envelope.Scope {
	t.Helper()
	scope, err := envelope.Tenant(id)
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

// Events reads records as events; every record must be one.
func Events(t testing.TB, records []*kgo.Record) []envelope.Event {
	t.Helper()
	var events []envelope.Event
	for _, r := range records {
		events = append(events, Event(t, r))
	}
	return events
}

// Event reads a record as an event.
func Event(t testing.TB, r *kgo.Record) envelope.Event {
	t.Helper()
	record := envelope.Record{Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		record.Headers = append(record.Headers, envelope.Header{Key: h.Key, Value: h.Value})
	}
	e, err := envelope.Parse(record)
	if err != nil {
		t.Fatalf("record at %s/%d/%d is no event: %v", r.Topic, r.Partition, r.Offset, err)
	}
	return e
}

// InOrder fails unless the first deliveries of each operation are in state version order from 1 on without gaps. It gives
// how often each event came, by source and id.
func InOrder(t testing.TB, events []envelope.Event) map[string]int {
	t.Helper()
	times := map[string]int{}
	last := map[string]int64{}
	for _, e := range events {
		key := e.Source() + " " + e.ID()
		if times[key]++; times[key] > 1 {
			continue
		}
		operation := e.Source() + " " + e.OperationID.String()
		if e.StateVersion != last[operation]+1 {
			t.Fatalf("operation %s: version %d came first after %d", operation, e.StateVersion, last[operation])
		}
		last[operation] = e.StateVersion
	}
	return times
}

// ExactlyOnce fails unless so many events came, each once and in order.
func ExactlyOnce(t testing.TB, events []envelope.Event, want int) {
	t.Helper()
	times := InOrder(t, events)
	for key, n := range times {
		if n != 1 {
			t.Errorf("event %s came %d times", key, n)
		}
	}
	if len(times) != want {
		t.Errorf("%d events came, want %d", len(times), want)
	}
}
