package monitor_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/monitor"
	"outboxrelay/internal/waittest"
)

// Two clients at once, as while a relay replaces one, are counted together; what they opened and held is let go with them.
func TestClientsAreCounted(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Fake(t, kfake.SeedTopics(1, "acme-events"))
	m := monitor.NewMetrics("v", "go", 1)
	var clients []*kgo.Client
	for range 2 {
		client, err := kgo.NewClient(append(broker.Options(), kgo.WithHooks(m.Client()), kgo.DefaultProduceTopic("acme-events"))...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		clients = append(clients, client)
		if err := client.ProduceSync(t.Context(), kgo.StringRecord("a"), kgo.StringRecord("b")).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	// The client counts a batch after it has told of its records.
	waittest.Until(t, 10*time.Second, "both clients to count their records", func() error {
		if body := scrape(t, m); !strings.Contains(body, "relay_kafka_produced_records_total 4\n") {
			return errors.New(body)
		}
		return nil
	})
	for _, line := range []string{"relay_kafka_buffered_records 0",
		"relay_kafka_connect_errors_total 0", "relay_kafka_request_errors_total 0", "relay_kafka_throttled_seconds_total 0"} {
		if body := scrape(t, m); !strings.Contains(body, line+"\n") {
			t.Errorf("no line %q in\n%s", line, body)
		}
	}
	for _, line := range []string{"relay_kafka_connections 0", "relay_kafka_connects_total 0", "relay_kafka_produced_batches_total 0",
		"relay_kafka_produced_bytes_total 0", "relay_kafka_written_bytes_total 0", "relay_kafka_read_bytes_total 0",
		"relay_kafka_request_duration_seconds_count 0", "acme"} {
		if body := scrape(t, m); strings.Contains(body, line) {
			t.Errorf("there is %q in\n%s", line, body)
		}
	}
	for _, client := range clients {
		client.Close()
	}
	if body := scrape(t, m); !strings.Contains(body, "relay_kafka_connections 0\n") {
		t.Errorf("connections are left after the clients were closed:\n%s", body)
	}
}

func TestClientThatCannotConnect(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Fake(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "relay", "s3cret"))
	m := monitor.NewMetrics("v", "go", 1)
	client := broker.Client(t, kgo.WithHooks(m.Client()), kgo.RequestRetries(0),
		kgo.SASL(plain.Auth{User: "relay", Pass: "wrong"}.AsMechanism()))
	if err := client.Ping(t.Context()); err == nil {
		t.Fatal("the broker answers")
	}
	client.Close()
	body := scrape(t, m)
	if strings.Contains(body, "relay_kafka_connect_errors_total 0") || !strings.Contains(body, "relay_kafka_connections 0\n") {
		t.Errorf("no failed connection is counted, or one is left:\n%s", body)
	}
	m.Client().OnBrokerThrottle(kgo.BrokerMetadata{}, 1500*time.Millisecond, true)
	if body := scrape(t, m); !strings.Contains(body, "relay_kafka_throttled_seconds_total 1.5\n") {
		t.Errorf("a quota is not counted:\n%s", body)
	}
}

// scrape gives what the metrics tell of Kafka clients.
func scrape(t *testing.T, m *monitor.Metrics) (lines string) {
	t.Helper()
	_, _, body := get(t, monitor.Handler(m, nil, nil, nil), "GET", "/metrics")
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "relay_kafka_") && !strings.Contains(line, "_bucket") {
			lines += line
		}
	}
	return lines
}
