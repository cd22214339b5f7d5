package faults_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkaserver"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/relayproc"
	"outboxrelay/kafkasink"
	"outboxrelay/relay"
)

// begin has a relay begin its first slot's ledger and end, and gives a sink to work on it as relays do, and its first entry.
func (s *scene) begin(mode map[string]string) (sink *kafkasink.Sink, slot relay.Slot, first relay.Entry) {
	s.T.Helper()
	s.run(mode, oneWorker)
	s.ready()
	s.relay.Kill()
	s.Broker.AwaitCommitted(s.T, mode["RELAY_LEDGER_TOPIC"])
	sink, err := kafkasink.New(kafkasink.Config{
		Connection: kafkasink.Connection{Brokers: s.Broker.Addrs, ClientID: "test"}, Topic: func(envelope.Scope) string { return s.Topic },
		Ledger: mode["RELAY_LEDGER_TOPIC"], MinInsyncReplicas: 1, DeliveryTimeout: 10 * time.Second, Compression: "none", MaxInFlight: 1000,
	})
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(sink.Close)
	slot = relay.SlotOf(mode["RELAY_TRANSACTIONAL_ID"], 0, 0)
	first, ok, err := sink.Last(s.T.Context(), slot)
	if err != nil || !ok {
		s.T.Fatalf("the ledger begins with %v, %t, %v", first, ok, err)
	}
	return sink, slot, first
}

// More transactions on one slot than a producer id has epochs: brokers give it another id while the relay works, and nothing else
// changes. The relay is killed on the way.
func TestExactlyOnceOutlivesEpochs(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	mode := s.exactly()
	sink, slot, entry := s.begin(mode)
	var session relay.Session
	relayproc.Until(t, "the slot", func() (err error) {
		session, err = sink.Open(t.Context(), slot)
		return err
	})
	before := size(100, 32_600) // of 32,767
	for i := range before {
		entry.Token = fmt.Sprintf("%s#%016x", slot.ID, i)
		if _, err := session.Commit(t.Context(), entry, nil, nil); err != nil {
			t.Fatalf("transaction %d: %v", i, err)
		}
	}
	session.Close()

	const events = 400
	single := map[string]string{"RELAY_BATCH_ROWS": "1"}
	s.Fill(s.acme, events, 1)
	s.run(mode, oneWorker, single)
	s.progress(events / 2)
	s.relay.Kill()
	s.expire()
	s.run(mode, oneWorker, single)
	s.Drained("true")
	s.eachOnce(events)
	ids, transactions := map[int64]bool{}, 0
	for _, r := range s.Broker.All(t, mode["RELAY_LEDGER_TOPIC"]) {
		ids[r.ProducerID] = true
		transactions++
	}
	t.Logf("%d transactions by %d producer ids", transactions, len(ids))
	if transactions < before+events {
		t.Errorf("%d transactions, want %d or more", transactions, before+events)
	}
	if *lengthy && len(ids) < 2 {
		t.Error("all transactions are of one producer id, want more")
	}
}

// Slots are idle for longer than brokers remember a transactional id, that of a relay which runs and that of one which was killed
// behind a commit: both go on, and the ledger is believed.
func TestExactlyOnceIdleBeyondExpiry(t *testing.T) {
	t.Parallel()
	own := kafkatest.Server(t, kafkaserver.Options{Settings: []string{
		"transactional.id.expiration.ms=2000", "transaction.remove.expired.transaction.cleanup.interval.ms=500", "producer.id.expiration.ms=2000",
		"producer.id.expiration.check.interval.ms=500",
	}})
	s := &scene{Fixture: relayproc.New(t, relayproc.Standalone, own.Broker), acme: relayproc.Tenant(t, "acme")}
	mode := s.exactly()
	forgotten := func() {
		t.Helper()
		id := mode["RELAY_TRANSACTIONAL_ID"] + "-0-0"
		relayproc.Until(t, "the id to be forgotten", func() error {
			described, err := own.Admin(t).DescribeTransactions(t.Context(), id)
			if err == nil && errors.Is(described[id].Err, kerr.TransactionalIDNotFound) {
				return nil
			}
			return errors.Join(errNotYet, err)
		})
	}
	s.crashUnmarked(mode)
	forgotten()
	s.run(mode, oneWorker)
	s.Drained("true")
	s.eachOnce(30)
	for range 2 {
		forgotten()
		s.Fill(s.acme, 10, 3)
		s.Drained("true")
	}
	s.eachOnce(90)
}

// The entry that decides lies behind a million others of its slot, and before some that were aborted: it is found, and at once.
func TestExactlyOnceLongLedger(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	mode := s.exactly()
	ledger := mode["RELAY_LEDGER_TOPIC"]
	sink, slot, _ := s.begin(mode)
	first := s.Broker.All(t, ledger)[0]
	other := func(i int) *kgo.Record {
		value := strings.Replace(string(first.Value), "#init", fmt.Sprintf("#%016x", i), 1)
		return &kgo.Record{Topic: ledger, Partition: slot.Partition, Key: first.Key, Value: []byte(value)}
	}
	others := size(100_000, 1_000_000)
	writer := s.Broker.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for i := range others {
		writer.Produce(t.Context(), other(i), func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("write entry: %v", err)
			}
		})
	}
	if err := writer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	claim := s.crashUnmarked(mode)
	aborted := s.Broker.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID(slot.ID))
	if err := aborted.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if err := aborted.ProduceSync(t.Context(), other(others+i)).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if err := aborted.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}

	began := time.Now()
	if err := sink.Fence(t.Context(), slot); err != nil {
		t.Fatal(err)
	}
	entry, ok, err := sink.Last(t.Context(), slot)
	took := time.Since(began)
	t.Logf("behind %d entries, fenced and looked up in %s", others, took.Round(time.Millisecond))
	if err != nil || !ok || entry.Token != claim {
		t.Errorf("the last entry is %q, %t, %v; want that of %q", entry.Token, ok, err, claim)
	}
	if took > time.Second {
		t.Errorf("that took %s, want less than a second", took)
	}
	s.run(mode, oneWorker)
	s.Drained("true")
	s.eachOnce(30)
}
