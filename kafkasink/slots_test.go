package kafkasink

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"outboxrelay/internal/kafkatest"
	"outboxrelay/relay"
)

// TestSlots: the slots that were taken are told of in their order, and an epoch grows with each fence.
func TestSlots(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		cfg := ledgerConfig(t, broker, broker.Topic(t, 1, nil))
		cfg.TransactionalID = kafkatest.Name("tx")
		sink := openReady(t, cfg, quick())
		slots := func() []SlotState {
			t.Helper()
			slots, err := Slots(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			return slots
		}
		if got := slots(); len(got) != 0 {
			t.Errorf("%+v before any slot was taken", got)
		}
		idle, busy := relay.SlotOf(cfg.TransactionalID, 0, 1), relay.SlotOf(cfg.TransactionalID, 0, 6)
		under := openSlot(t, sink, busy).(*session)
		openSlot(t, sink, idle)
		before := slots()
		checkFence(t, sink, idle)
		if err := under.client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := under.client.ProduceSync(t.Context(), ledgerRecord(cfg.Ledger, busy, entry("under way"))).FirstErr(); err != nil {
			t.Fatal(err)
		}
		after := slots()
		if len(before) != 2 || len(after) != 2 || after[0].Slot != idle || after[1].Slot != busy {
			t.Fatalf("%+v, then %+v, want slots 1 and 6", before, after)
		}
		if b, a := before[0], after[0]; a.Epoch != b.Epoch+1 || a.ProducerID != b.ProducerID || a.State != "Empty" || a.Open != 0 {
			t.Errorf("a slot is %+v, and when it was fenced %+v", b, a)
		}
		if s := after[1]; s.State != "Ongoing" || s.Open > time.Minute || s.Hangs {
			t.Errorf("a slot with a transaction that was just begun is %+v", s)
		}
	})
}

// TestSlotThatHangs: a transaction that brokers should have ended is named.
func TestSlotThatHangs(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Fake(t, kfake.SeedTopics(8, "ledger"))
	id := relay.SlotOf("tx", 0, 2).ID
	broker.Cluster.ControlKey(int16(kmsg.DescribeTransactions), func(req kmsg.Request) (kmsg.Response, error, bool) {
		broker.Cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.DescribeTransactionsResponse)
		for _, asked := range req.(*kmsg.DescribeTransactionsRequest).TransactionalIDs {
			state := kmsg.NewDescribeTransactionsResponseTransactionState()
			state.TransactionalID, state.State, state.TimeoutMillis = asked, "Ongoing", 15_000
			state.StartTimestamp = time.Now().Add(-time.Hour).UnixMilli()
			if asked != id {
				state.ErrorCode = kerr.TransactionalIDNotFound.Code
			}
			resp.TransactionStates = append(resp.TransactionStates, state)
		}
		return resp, nil, true
	})
	cfg := config(broker.Broker, "events")
	cfg.Ledger, cfg.TransactionalID = "ledger", "tx"
	slots, err := Slots(t.Context(), cfg)
	if err != nil || len(slots) != 1 || slots[0].Slot.ID != id || !slots[0].Hangs || slots[0].Open < time.Hour {
		t.Errorf("%+v, %v, want one transaction that hangs", slots, err)
	}
}

// TestSlotsWithoutRights: the error says which are missing.
func TestSlotsWithoutRights(t *testing.T) {
	t.Parallel()
	secured := kafkatest.Secure(t)
	user := secured.User(t)
	cfg := config(secured.Broker, "events")
	cfg.TLS = &TLS{CAFile: secured.CAFile(t)}
	cfg.SASL = &SASL{Mechanism: "SCRAM-SHA-512", Username: user.Name, Password: func() (string, error) { return user.Password, nil }}
	cfg.Ledger, cfg.TransactionalID = secured.Topic(t, 8, nil), kafkatest.Name("tx")
	says := func(want error, text string) {
		t.Helper()
		waitFor(t, "the error", func() error { // the broker learns of rights a moment later
			_, err := Slots(t.Context(), cfg)
			if !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), text) {
				return fmt.Errorf("%v, want %q", err, text)
			}
			return nil
		})
	}
	says(kerr.TopicAuthorizationFailed, cfg.Ledger)
	secured.Allow(t, user, kadm.NewACLs().Topics(cfg.Ledger).ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpDescribe))
	says(kerr.TransactionalIDAuthorizationFailed, fmt.Sprintf("grant WRITE, DESCRIBE on transactional ids with the prefix %q", cfg.TransactionalID+"-"))
	secured.Allow(t, user, kadm.NewACLs().TransactionalIDs(cfg.TransactionalID+"-").ResourcePatternType(kadm.ACLPatternPrefixed).Operations(kadm.OpDescribe))
	says(nil, "")
}
