package monitor

import (
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Client counts what Kafka clients do, all of them together: a relay makes a new one now and then while it still has the old one,
// and in exactly-once has several. It names no topic, since a topic's name may hold a tenant's.
type Client struct {
	connections, buffered                             prometheus.Gauge
	connects, connectErrors, requestErrors, throttled prometheus.Counter
	written, read, records, batches, produced         prometheus.Counter
	requests                                          prometheus.Histogram
}

var (
	_ kgo.HookBrokerConnect           = (*Client)(nil)
	_ kgo.HookBrokerDisconnect        = (*Client)(nil)
	_ kgo.HookBrokerE2E               = (*Client)(nil)
	_ kgo.HookBrokerThrottle          = (*Client)(nil)
	_ kgo.HookProduceBatchWritten     = (*Client)(nil)
	_ kgo.HookProduceRecordBuffered   = (*Client)(nil)
	_ kgo.HookProduceRecordUnbuffered = (*Client)(nil)
)

func newClient(r registry) *Client {
	c := &Client{
		connections:   r.gauge("relay_kafka_connections", "Connections to brokers."),
		buffered:      r.gauge("relay_kafka_buffered_records", "Records that the client holds, unanswered ones included."),
		connects:      r.counter("relay_kafka_connects_total", "Connections to brokers that were opened."),
		connectErrors: r.counter("relay_kafka_connect_errors_total", "Connections to brokers that could not be opened, logins included."),
		requestErrors: r.counter("relay_kafka_request_errors_total", "Requests that could not be written or whose answers could not be read."),
		written:       r.counter("relay_kafka_written_bytes_total", "Bytes that were written to brokers."),
		read:          r.counter("relay_kafka_read_bytes_total", "Bytes that were read from brokers."),
		records:       r.counter("relay_kafka_produced_records_total", "Records that brokers took."),
		batches:       r.counter("relay_kafka_produced_batches_total", "Batches that brokers took."),
		produced:      r.counter("relay_kafka_produced_bytes_total", "Bytes of these batches, as they were compressed."),
		throttled:     r.counter("relay_kafka_throttled_seconds_total", "For how long brokers held the client up because of a quota."),
		requests:      r.histogram("relay_kafka_request_duration_seconds", "From writing a request to its answer, of any kind of request.", calls),
	}
	return c
}

// OnBrokerConnect implements [kgo.HookBrokerConnect]. A connection on which the login failed was one, and is closed.
func (c *Client) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, conn net.Conn, err error) {
	if conn != nil {
		c.connections.Inc()
	}
	if err != nil {
		c.connectErrors.Inc()
		return
	}
	c.connects.Inc()
}

// OnBrokerDisconnect implements [kgo.HookBrokerDisconnect].
func (c *Client) OnBrokerDisconnect(kgo.BrokerMetadata, net.Conn) { c.connections.Dec() }

// OnBrokerE2E implements [kgo.HookBrokerE2E].
func (c *Client) OnBrokerE2E(_ kgo.BrokerMetadata, _ int16, e2e kgo.BrokerE2E) {
	c.written.Add(float64(e2e.BytesWritten))
	c.read.Add(float64(e2e.BytesRead))
	if e2e.Err() != nil {
		c.requestErrors.Inc()
		return
	}
	c.requests.Observe(e2e.DurationE2E().Seconds())
}

// OnBrokerThrottle implements [kgo.HookBrokerThrottle].
func (c *Client) OnBrokerThrottle(_ kgo.BrokerMetadata, held time.Duration, _ bool) {
	c.throttled.Add(held.Seconds())
}

// OnProduceBatchWritten implements [kgo.HookProduceBatchWritten].
func (c *Client) OnProduceBatchWritten(_ kgo.BrokerMetadata, _ string, _ int32, batch kgo.ProduceBatchMetrics) {
	c.batches.Inc()
	c.records.Add(float64(batch.NumRecords))
	c.produced.Add(float64(batch.CompressedBytes))
}

// OnProduceRecordBuffered implements [kgo.HookProduceRecordBuffered].
func (c *Client) OnProduceRecordBuffered(*kgo.Record) { c.buffered.Inc() }

// OnProduceRecordUnbuffered implements [kgo.HookProduceRecordUnbuffered].
func (c *Client) OnProduceRecordUnbuffered(*kgo.Record, error) { c.buffered.Dec() }
