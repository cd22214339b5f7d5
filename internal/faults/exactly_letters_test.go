package faults_test

import (
	"strings"
	"testing"

	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/moments"
	"outboxrelay/internal/relayproc"
)

// Two events can't be sent as they are: one is no event, the other is larger than its topic takes, which is seen with the
// transaction already begun.
func (s *scene) fillFaulty() {
	s.T.Helper()
	s.DB.Exec(s.T, "alter table aksara_operation_outbox alter column next_attempt_at set default now() + interval '1 hour'")
	s.Fill(s.acme, 20, 3)
	s.DB.Exec(s.T, `update aksara_operation_outbox set payload = '["PAYLOAD-TEXT"]'
		where id = (select min(id) from aksara_operation_outbox where payload->>'state_version' = '3')`)
	s.DB.Exec(s.T, `update aksara_operation_outbox set payload = payload || jsonb_build_object('more', repeat(md5(id::text), 1000))
		where id = (select max(id) from aksara_operation_outbox where payload->>'state_version' = '3')`)
	s.DB.Exec(s.T, "update aksara_operation_outbox set next_attempt_at = now()")
}

// buried fails unless the two faulty events are dead letters, each once, and all others events, each once.
func (s *scene) buried(letters string) {
	s.T.Helper()
	s.Drained("true")
	s.eachOnce(58)
	s.Broker.AwaitCommitted(s.T, letters)
	if n := len(s.Broker.All(s.T, letters)); n != 2 {
		s.T.Errorf("%d dead letters, want 2", n)
	}
	if n := s.CountRows("last_error like 'dead-lettered: %' and claimed_by is null"); n != 2 {
		s.T.Errorf("%d rows say that they were dead-lettered, want 2", n)
	}
}

// In exactly-once mode dead letters go into the transactions: killed at each moment of a transaction's end and of what is written
// then, each letter and each event is there once.
func TestExactlyOnceDeadLetters(t *testing.T) {
	t.Parallel()
	when := []moments.Moment{
		{What: moments.EndTxn, Stage: moments.Sent}, {What: moments.EndTxn, Stage: moments.Done}, {What: moments.EndTxn, Stage: moments.Told},
		{What: moments.Mark, Stage: moments.Done},
	}
	atEachMoment(t, when, func(s *scene, m moments.Moment, watch *moments.Watch) {
		letters := s.Broker.Topic(s.T, 1, nil)
		s.Topic = s.Broker.Topic(s.T, 3, map[string]string{"max.message.bytes": "20000"})
		env := s.Env("acme", s.exactly(), map[string]string{
			"RELAY_DATABASE_URL": s.watched(watch), "RELAY_KAFKA_CLIENT_ID": m.String(), "RELAY_WORKERS": "1",
			"RELAY_ROW_FAULTS": "dead-letter", "RELAY_DEAD_LETTER_TOPIC": letters,
		})
		s.inWait(m, watch, env, true, s.fillFaulty)
		s.relay = relayproc.Start(s.T, env)
		s.buried(letters)
	})
}

// The dead-letter topic is missing: whatever is no dead letter is delivered, and when the topic is there the letters follow.
func TestExactlyOnceWithoutDeadLetterTopic(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Topic = s.Broker.Topic(t, 3, map[string]string{"max.message.bytes": "20000"})
	letters := kafkatest.Name("letters")
	s.fillFaulty()
	s.run(s.exactly(), map[string]string{
		"RELAY_ROW_FAULTS": "dead-letter", "RELAY_DEAD_LETTER_TOPIC": letters, "RELAY_RETRY_DELAY": "200ms", "RELAY_RETRY_MAX_DELAY": "1s",
	})
	relayproc.Until(t, "both events to wait for their dead letters", func() error {
		return unequal(2, s.CountRows("last_error like '%and its dead letter: %'"))
	})
	for range 3 {
		s.Fill(s.acme, 5, 1)
		s.DB.Exec(t, "update aksara_operation_outbox set next_attempt_at = now() where last_error is null and exported_at is null")
		s.Drained("last_error is null")
	}
	if strings.Contains(s.relay.Log.String(), "PAYLOAD-TEXT") {
		t.Error("a payload stands in the log")
	}
	s.Broker.CreateTopic(t, letters, 1, nil)
	s.Drained("true")
	s.Broker.AwaitCommitted(t, letters)
	if n := len(s.Broker.All(t, letters)); n != 2 {
		t.Errorf("%d dead letters, want 2", n)
	}
	s.eachOnce(58 + 15)
}
