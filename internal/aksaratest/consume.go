package aksaratest

import (
	"encoding/json"
	"testing"
	"time"
)

// readTime bounds the reading of a topic whose options don't.
const readTime = time.Minute

// ReadOptions says what to read from a topic.
type ReadOptions struct {
	Topic string
	// Count is the number of records to wait for. Reading ends when so many were seen and every partition was read to its
	// end, so there may be more. With 0 it ends at the partitions' ends.
	Count   int
	Timeout time.Duration     // 0 means a minute
	Config  map[string]string // more settings of librdkafka, such as those for TLS and SASL
}

// Header is a record's header.
type Header struct {
	Name  string `json:"name"`
	Value []byte `json:"value"` // nil for null
}

// Record is a record as it lies in the topic.
type Record struct {
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Key       []byte   `json:"key"`   // nil for null
	Value     []byte   `json:"value"` // nil for null
	Headers   []Header `json:"headers"`
	Timestamp int64    `json:"timestamp"` // milliseconds since 1970
}

// Consume reads a topic from its beginning, committed records only, with librdkafka. Brokers is a list of host:port,
// separated by commas. Records of one partition come in its order.
func Consume(t testing.TB, brokers string, options ReadOptions) []Record {
	t.Helper()
	return mustRun[[]Record](t, "consume", options.arguments(brokers))
}

// CloudEvent is a record as a CloudEvents SDK understands it.
type CloudEvent struct {
	Partition  int32             `json:"partition"`
	Offset     int64             `json:"offset"`
	Attributes map[string]string `json:"attributes"` // names without their prefix; partitionkey is the record's key
	Data       json.RawMessage   `json:"data"`
}

// ReadCloudEvents reads a topic as Consume does and passes each record to the Kafka binding of the Python CloudEvents SDK.
// The test fails at a record which that refuses.
func ReadCloudEvents(t testing.TB, brokers string, options ReadOptions) []CloudEvent {
	t.Helper()
	return mustRun[[]CloudEvent](t, "read_cloudevents", options.arguments(brokers))
}

func (o ReadOptions) arguments(brokers string) map[string]any {
	if o.Timeout == 0 {
		o.Timeout = readTime
	}
	if o.Config == nil {
		o.Config = map[string]string{}
	}
	return map[string]any{
		"brokers": brokers,
		"topic":   o.Topic,
		"count":   o.Count,
		"seconds": o.Timeout.Seconds(),
		"config":  o.Config,
	}
}
