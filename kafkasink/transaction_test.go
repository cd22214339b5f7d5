package kafkasink

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/relay"
)

// ledgerConfig is that of a sink with a ledger of its own.
func ledgerConfig(t *testing.T, broker *kafkatest.Broker, topic string) Config {
	t.Helper()
	cfg := config(broker, topic)
	cfg.Ledger = broker.Topic(t, 8, map[string]string{"cleanup.policy": "compact"})
	return cfg
}

// slot is one that no other test has.
func slot() relay.Slot { return relay.SlotOf(kafkatest.Name("tx"), 0, 3) }

func openSlot(t *testing.T, sink *Sink, slot relay.Slot) relay.Session {
	t.Helper()
	session, err := sink.Open(t.Context(), slot)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

// entry is one about some rows of the non-tenant scope.
func entry(token string, rows ...int64) relay.Entry {
	return relay.Entry{Token: token, Source: "here", Rows: map[envelope.Scope][]int64{envelope.NonTenant(): rows}}
}

// wantLast fails unless a slot's last entry has a token, or there is none if that is empty.
func wantLast(t *testing.T, sink *Sink, slot relay.Slot, token string, rows ...int64) {
	t.Helper()
	got, ok, err := sink.Last(t.Context(), slot)
	if err != nil || ok != (token != "") || got.Token != token || ok && (got.Source != "here" || !slices.Equal(got.Rows[envelope.NonTenant()], rows)) {
		t.Errorf("last entry: %v, %t, %v; want %q of rows %d", got, ok, err, token, rows)
	}
}

// TestTransaction: events and entry are there together, and the entry is found, also behind many others and aborted ones.
func TestTransaction(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		topic := broker.Topic(t, 3, nil)
		sink, slot := openReady(t, ledgerConfig(t, broker, topic), quick()), slot()
		session := openSlot(t, sink, slot)
		wantLast(t, sink, slot, "")
		var want []string
		for i := range 100 {
			e := event(t, uuid.New(), 1, 10)
			want = append(want, e.ID())
			if answers, err := session.Commit(t.Context(), entry("token", int64(i)), []envelope.Event{e}, nil); err != nil {
				t.Fatal(answers, err)
			}
		}
		wantLast(t, sink, slot, "token", 99)
		broker.AwaitCommitted(t, topic)
		got := ids(t, broker, topic)
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("the topic holds %d events, want the 100 that were committed", len(got))
		}
	})
}

// TestEntries: the last entry of each slot of a prefix is found at once, behind many others too, without waiting for a transaction
// that is open. Those of another prefix in the same ledger are left out.
func TestEntries(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		prefix, other := kafkatest.Name("tx"), kafkatest.Name("tx")
		sink := openReady(t, ledgerConfig(t, broker, broker.Topic(t, 1, nil)), quick())
		commit := func(slot relay.Slot, token string, times int) relay.Session {
			session := openSlot(t, sink, slot)
			for range times {
				if answers, err := session.Commit(t.Context(), entry(token), nil, nil); err != nil {
					t.Fatal(answers, err)
				}
			}
			return session
		}
		first, second := relay.SlotOf(prefix, 0, 0), relay.SlotOf(prefix, 0, 5)
		commit(first, "first", 1)
		commit(relay.SlotOf(other, 0, 0), "other", 50) // in the same partition
		open := commit(second, "second", 1).(*session)
		if err := open.client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		under := ledgerRecord(sink.cfg.Ledger, second, entry("under way"))
		if err := open.client.ProduceSync(t.Context(), under).FirstErr(); err != nil {
			t.Fatal(err)
		}
		want := map[relay.Slot]string{first: "first", second: "second"}
		waitFor(t, "the entries", func() error { // which may be behind by a moment
			entries, err := sink.Entries(t.Context(), prefix)
			got := map[relay.Slot]string{}
			for slot, entry := range entries {
				got[slot] = entry.Token
			}
			if err != nil || !maps.Equal(got, want) {
				return fmt.Errorf("%v, %v, want %v", got, err, want)
			}
			return nil
		})
	})
}

// TestFencedSession: a slot is taken by another between a claim and the first record, when the client would ask for its epoch
// if it had not been made to ask before. What is sent then is refused.
func TestFencedSession(t *testing.T) {
	for name, fence := range map[string]func(*testing.T, *Sink, relay.Slot){
		"taken":  func(t *testing.T, s *Sink, slot relay.Slot) { openSlot(t, s, slot) },
		"fenced": func(t *testing.T, s *Sink, slot relay.Slot) { checkFence(t, s, slot) },
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, broker *kafkatest.Broker) {
				topic := broker.Topic(t, 1, nil)
				cfg := ledgerConfig(t, broker, topic)
				sink, other, slot := openReady(t, cfg, quick()), openReady(t, cfg, quick()), slot()
				session := openSlot(t, sink, slot)
				fence(t, other, slot)
				if _, err := session.Commit(t.Context(), entry("late", 1), []envelope.Event{event(t, uuid.New(), 1, 10)}, nil); err == nil {
					t.Error("a session that was fenced committed")
				}
				wantLast(t, other, slot, "")
				if got := ids(t, broker, topic); len(got) > 0 {
					t.Errorf("the topic holds %q", got)
				}
			})
		})
	}
}

func checkFence(t *testing.T, sink *Sink, slot relay.Slot) {
	t.Helper()
	if err := sink.Fence(t.Context(), slot); err != nil {
		t.Fatal(err)
	}
}

// TestTransactionWithAnEventTooLarge: nothing is sent, and the answers tell the guilty event from the others.
func TestTransactionWithAnEventTooLarge(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		topic := broker.Topic(t, 1, map[string]string{"max.message.bytes": "10000"})
		sink, slot := openReady(t, ledgerConfig(t, broker, topic), quick()), slot()
		session := openSlot(t, sink, slot)
		events := []envelope.Event{event(t, uuid.New(), 1, 10), event(t, uuid.New(), 1, 20_000), event(t, uuid.New(), 1, 10)}
		answers, err := session.Commit(t.Context(), entry("token", 1, 2, 3), events, nil)
		if err == nil || len(answers) != 3 {
			t.Fatalf("%v, %v", answers, err)
		}
		for i, want := range []relay.Class{relay.NotAttempted, relay.RowFault, relay.NotAttempted} {
			if got := relay.ClassOf(answers[i]); got != want {
				t.Errorf("event %d: %s (%v), want %s", i, got, answers[i], want)
			}
		}
		wantLast(t, sink, slot, "")
	})
}

// TestTransactionCutShort: its time is over before it is committed. Nobody knows what became of it, and the slot is to be taken
// anew.
func TestTransactionCutShort(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		topic := broker.Topic(t, 1, nil)
		sink, slot := openReady(t, ledgerConfig(t, broker, topic), quick()), slot()
		session := openSlot(t, sink, slot)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("enough"))
		if _, err := session.Commit(ctx, entry("token", 1), []envelope.Event{event(t, uuid.New(), 1, 10)}, nil); err == nil {
			t.Fatal("it was committed")
		}
		session.Close()
		again := openSlot(t, sink, slot)
		wantLast(t, sink, slot, "")
		if _, err := again.Commit(t.Context(), entry("next", 1), []envelope.Event{event(t, uuid.New(), 1, 10)}, nil); err != nil {
			t.Fatal(err)
		}
		wantLast(t, sink, slot, "next", 1)
	})
}

// TestUnfitLedger: a slot is not taken while the ledger's topic would not keep what it is for, and the error says what to do.
func TestUnfitLedger(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		topic := broker.Topic(t, 1, nil)
		for want, ledger := range map[string]string{
			"does not exist":        kafkatest.Name("none"),
			"cleanup.policy=delete": broker.Topic(t, 8, nil),
			"give it more":          broker.Topic(t, 2, map[string]string{"cleanup.policy": "compact"}),
		} {
			cfg := config(broker, topic)
			cfg.Ledger = ledger
			sink := open(t, cfg, quick())
			waitFor(t, "the topic of events", func() error { return sink.topics.ready(topic) })
			if _, err := sink.Open(t.Context(), slot()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q in it", err, want)
			}
		}
	})
}
