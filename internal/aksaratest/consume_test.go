package aksaratest_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/internal/aksaratest"
)

const topic = "events"

// sent is an event as the Kafka binding of CloudEvents writes it in binary mode.
func sent() *kgo.Record {
	return &kgo.Record{
		Topic:     topic,
		Key:       []byte("key-1"),
		Value:     []byte(`{"n": 9007199254740993}`),
		Timestamp: time.UnixMilli(1_700_000_000_123),
		Headers: []kgo.RecordHeader{
			{Key: "content-type", Value: []byte("application/json")},
			{Key: "ce_specversion", Value: []byte("1.0")},
			{Key: "ce_id", Value: []byte("1:1")},
			{Key: "ce_source", Value: []byte("/namespaces/shop")},
			{Key: "ce_type", Value: []byte("test")},
			{Key: "ce_time", Value: []byte("2026-01-02T03:04:05.000006Z")},
			{Key: "ce_tenant", Value: []byte("日本 😀")},
		},
	}
}

// newTopic starts a broker with the topic, which has one partition, and returns the broker's address.
func newTopic(t *testing.T) (brokers string) {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topic))
	if err != nil {
		t.Fatalf("start a broker: %v", err)
	}
	t.Cleanup(cluster.Close)
	return cluster.ListenAddrs()[0]
}

func produce(t *testing.T, brokers string, records ...*kgo.Record) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		t.Fatalf("make a producer: %v", err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatalf("produce: %v", err)
	}
}

func TestConsumeReadsRecordsByteForByte(t *testing.T) {
	t.Parallel()
	brokers := newTopic(t)
	event := sent()
	event.Headers = append(event.Headers, kgo.RecordHeader{Key: "twice", Value: []byte{0xff, 0}},
		kgo.RecordHeader{Key: "twice", Value: []byte{}}, kgo.RecordHeader{Key: "null"})
	tombstone := &kgo.Record{Topic: topic, Key: []byte{}, Timestamp: event.Timestamp}
	produce(t, brokers, event, tombstone)

	want := []aksaratest.Record{
		{Offset: 0, Key: event.Key, Value: event.Value, Timestamp: event.Timestamp.UnixMilli()},
		{Offset: 1, Key: []byte{}, Headers: []aksaratest.Header{}, Timestamp: event.Timestamp.UnixMilli()},
	}
	for _, header := range event.Headers {
		want[0].Headers = append(want[0].Headers, aksaratest.Header{Name: header.Key, Value: header.Value})
	}
	got := aksaratest.Consume(t, brokers, aksaratest.ReadOptions{Topic: topic})
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestReadCloudEventsParsesRecords(t *testing.T) {
	t.Parallel()
	brokers := newTopic(t)
	event := sent()
	produce(t, brokers, event)

	got := aksaratest.ReadCloudEvents(t, brokers, aksaratest.ReadOptions{Topic: topic, Count: 1})
	want := []aksaratest.CloudEvent{{
		Attributes: map[string]string{
			"specversion": "1.0", "id": "1:1", "source": "/namespaces/shop", "type": "test", "tenant": "日本 😀",
			"time": "2026-01-02T03:04:05.000006+00:00", "datacontenttype": "application/json", "partitionkey": "key-1",
		},
		Data: event.Value,
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
