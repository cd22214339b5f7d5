package kafkasink

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/relay"
)

// exactConfig is that of exactly-once mode with the first instance's four workers.
func exactConfig(t *testing.T, broker *kafkatest.Broker) Config {
	t.Helper()
	cfg := ledgerConfig(t, broker, broker.Topic(t, 1, nil))
	cfg.TransactionalID, cfg.LedgerPartitions = kafkatest.Name("tx"), 4
	return cfg
}

// faults are the lines of an inspection that are not ok.
func faults(t *testing.T, cfg Config) (lines []string) {
	t.Helper()
	for _, f := range Inspect(t.Context(), cfg, []envelope.Scope{envelope.NonTenant()}) {
		if f.Level != relay.OK {
			lines = append(lines, f.Check+": "+f.Seen+" -> "+f.Do)
		}
	}
	return lines
}

func wantFault(t *testing.T, cfg Config, want string) {
	t.Helper()
	if got := faults(t, cfg); len(got) != 1 || !strings.Contains(got[0], want) {
		t.Errorf("found %q, want one line with %q", got, want)
	}
}

// TestInspectExactlyOnce: nothing is wrong, and then one thing at a time; who holds a slot is not disturbed by the look.
func TestInspectExactlyOnce(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		cfg := exactConfig(t, broker)
		sink, slot := openReady(t, cfg, quick()), relay.SlotOf(cfg.TransactionalID, 0, 0)
		session := openSlot(t, sink, slot)
		if got := faults(t, cfg); got != nil {
			t.Errorf("found %q", got)
		}
		if _, err := session.Commit(t.Context(), entry("token", 1), nil, nil); err != nil {
			t.Errorf("after the look: %v", err)
		}
		few := cfg
		few.LedgerPartitions = 12
		wantFault(t, few, "has 8 partitions, and this relay needs 12 -> give it 12 partitions or more")
		deleting := cfg
		deleting.Ledger = broker.Topic(t, 8, nil)
		wantFault(t, deleting, "has cleanup.policy=delete -> set its cleanup.policy to compact alone")
		slow := cfg
		slow.DeliveryTimeout = 1 << 40
		wantFault(t, slow, "raise their transaction.max.timeout.ms")
	})
}

// TestInspectTransactions: brokers with transactions of the former kind.
func TestInspectTransactions(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Fake(t).Broker
	cfg := exactConfig(t, broker)
	former := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
	former.Feature, former.MaxVersionLevel, former.UpgradeType = transactionFeature, transactionVersion-1, 2 // safe downgrade
	req := kmsg.NewPtrUpdateFeaturesRequest()
	req.FeatureUpdates = append(req.FeatureUpdates, former)
	if resp, err := req.RequestWith(t.Context(), broker.Client(t)); err != nil || resp.ErrorCode != 0 {
		t.Fatal(resp, err)
	}
	wantFault(t, cfg, "the brokers do not have transaction.version=2")
}
