package kafkasink

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/relay"
)

func deadLetter(data string) envelope.DeadLetter {
	return envelope.DeadLetter{
		Namespace: "shop", Scope: envelope.NonTenant(), OperationID: uuid.New(), Type: "t", Created: time.Now(),
		Data: []byte(data), Bytes: int64(len(data)), Attempts: 2, Reason: "bad",
	}
}

// Letters arrive whole, or without their value where that is too large for their topic.
func TestBury(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		topic, dead := broker.Topic(t, 1, nil), broker.Topic(t, 1, map[string]string{"max.message.bytes": "5000"})
		cfg := config(broker, topic)
		cfg.DeadLetterTopic = func(envelope.Scope) string { return dead }
		sink := openReady(t, cfg, quick())
		waitFor(t, "the letters' topic to be read", func() error { return sink.topics.readyForLetters(dead) })
		letters := []envelope.DeadLetter{deadLetter("[]"), deadLetter(`"` + strings.Repeat("x", 6000) + `"`)}
		tooLong := deadLetter("[]")
		tooLong.Reason = strings.Repeat("long ", 2000)
		errs := sink.Bury(t.Context(), append(letters, tooLong))
		if errs[0] != nil || errs[1] != nil || relay.ClassOf(errs[2]) != relay.RowFault {
			t.Fatalf("answers %v, want two letters to arrive and a fault", errs)
		}
		for i, r := range broker.Consume(t, dead, 2) {
			headers := map[string]string{}
			for _, h := range r.Headers {
				headers[h.Key] = string(h.Value)
			}
			wantValue, wantSize := letters[i].Data, ""
			if i == 1 {
				wantValue, wantSize = nil, fmt.Sprint(letters[1].Bytes)
			}
			if string(r.Value) != string(wantValue) || (r.Value == nil) != (wantValue == nil) || headers["relay_truncated"] != wantSize ||
				headers["relay_topic"] != topic || headers["relay_error"] != "bad" || headers["relay_attempts"] != "2" ||
				string(r.Key) != letters[i].OperationID.String() {
				t.Errorf("letter %d: key %q, value of %d bytes, headers %q", i, r.Key, len(r.Value), headers)
			}
		}
	})
}

// Letters that did not fit keep their value if the limit of their topic is raised, also before the sink looks for it.
func TestBuryAfterTheLimitWasRaised(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		topic, dead := broker.Topic(t, 1, nil), broker.Topic(t, 1, map[string]string{"max.message.bytes": "5000"})
		cfg := config(broker, topic)
		cfg.DeadLetterTopic = func(envelope.Scope) string { return dead }
		pace := quick()
		pace.settings = time.Hour
		sink := openReady(t, cfg, pace)
		waitFor(t, "the letters' topic to be read", func() error { return sink.topics.readyForLetters(dead) })
		set(t, broker, dead, "max.message.bytes", "100000")
		waitFor(t, "the broker to know the new limit", func() error {
			topics, err := readTopics(t.Context(), broker.Client(t), []string{dead})
			if err == nil && topics[dead].maxMessage != 100_000 {
				err = fmt.Errorf("the limit is %d", topics[dead].maxMessage)
			}
			return err
		})
		letter := deadLetter(`"` + strings.Repeat("x", 20_000) + `"`)
		waitFor(t, "the letter to arrive", func() error { return sink.Bury(t.Context(), []envelope.DeadLetter{letter})[0] })
		if r := broker.Consume(t, dead, 1)[0]; string(r.Value) != string(letter.Data) {
			t.Errorf("a value of %d bytes arrived, want %d", len(r.Value), len(letter.Data))
		}
	})
}

// A letter whose topic can't be used is not sent, and says which topic that is.
func TestBuryWithoutATopic(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		cfg := config(broker, broker.Topic(t, 1, nil))
		cfg.DeadLetterTopic = func(envelope.Scope) string { return "missing-letters" }
		sink := openReady(t, cfg, quick())
		waitFor(t, "the letters' topic to be missed", func() error {
			errs := sink.Bury(context.Background(), []envelope.DeadLetter{deadLetter("[]")})
			if err := errs[0]; relay.ClassOf(err) != relay.NotAttempted || !strings.Contains(err.Error(), "does not exist") {
				return fmt.Errorf("answer: %w", err)
			}
			return nil
		})
	})
}
