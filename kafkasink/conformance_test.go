package kafkasink_test

import (
	"context"
	"testing"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/kafkasink"
	"outboxrelay/relay/relaytest"
)

// TestConformance holds the sink against the comments of its port.
func TestConformance(t *testing.T) {
	t.Parallel()
	brokers := map[string]func(*testing.T) *kafkatest.Broker{
		"fake": func(t *testing.T) *kafkatest.Broker { return kafkatest.Fake(t).Broker },
		"real": func(t *testing.T) *kafkatest.Broker { return kafkatest.Plain(t) },
	}
	for name, broker := range brokers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			relaytest.ExerciseSink(t, func(t *testing.T) relaytest.Outlet { return outlet(t, broker(t)) })
		})
	}
}

// outlet is a sink with a topic of its own.
func outlet(t *testing.T, broker *kafkatest.Broker) relaytest.Outlet {
	t.Helper()
	topic := broker.Topic(t, 3, map[string]string{"max.message.bytes": "10000"})
	sink, err := kafkasink.New(kafkasink.Config{
		Connection:        kafkasink.Connection{Brokers: broker.Addrs, ClientID: "relay"},
		Topic:             func(envelope.Scope) string { return topic },
		MinInsyncReplicas: 1, DeliveryTimeout: 10 * time.Second, Compression: "none", MaxInFlight: 10_000,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sink.Close)
	scope := envelope.NonTenant()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := sink.AwaitReady(ctx, scope); err != nil {
		t.Fatalf("the sink is not ready: %v", err)
	}
	return relaytest.Outlet{
		Sink: sink, Scope: scope, Oversize: 20_000,
		Arrived: func() []envelope.Event { return arrived(t, broker, topic) },
	}
}

// arrived reads a topic back.
func arrived(t *testing.T, broker *kafkatest.Broker, topic string) []envelope.Event {
	t.Helper()
	var events []envelope.Event
	for _, r := range broker.All(t, topic) {
		headers := make([]envelope.Header, len(r.Headers))
		for i, h := range r.Headers {
			headers[i] = envelope.Header{Key: h.Key, Value: h.Value}
		}
		event, err := envelope.Parse(envelope.Record{Key: r.Key, Value: r.Value, Headers: headers})
		if err != nil {
			t.Fatalf("offset %d of partition %d: %v", r.Offset, r.Partition, err)
		}
		events = append(events, event)
	}
	return events
}
