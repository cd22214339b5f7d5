package faults_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"

	"outboxrelay/internal/relayproc"
)

var quickRetry = map[string]string{"RELAY_RETRY_DELAY": "500ms", "RELAY_RETRY_MAX_DELAY": "1s"}

// Somebody deletes the topic under a running relay and makes it again, some time later or at once, so that the relay meets
// another topic of the same name: what is written from then on is in the new one, once and in order.
func TestTopicIsReplaced(t *testing.T) {
	t.Parallel()
	for name, whileMissing := range map[string]func(*scene){
		"later":   func(s *scene) { s.unready(broker) },
		"at once": func(*scene) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.Fill(s.acme, 100, 3)
			operation, err := relayproc.App.Admit(t.Context(), s.Pool, s.acme)
			if err != nil {
				t.Fatal(err)
			}
			s.run(quickRetry)
			s.Drained("true")
			relayproc.ExactlyOnce(t, s.Events(), 301)

			s.deleteTopic()
			s.Fill(s.acme, 100, 3)
			s.advance(operation)
			whileMissing(s)
			if n := s.exported(); n != 301 {
				t.Errorf("%d rows are exported without a topic, want 301", n)
			}
			s.makeTopic()
			s.recovered()
			s.Drained("true")
			s.onlyNew(operation)
			s.clean()
		})
	}
}

func (s *scene) advance(operation uuid.UUID) {
	s.T.Helper()
	if err := relayproc.App.Advance(s.T.Context(), s.Pool, s.acme, operation, "claimed", "ready"); err != nil {
		s.T.Fatal(err)
	}
}

func (s *scene) deleteTopic() {
	s.T.Helper()
	if _, err := s.Broker.Admin(s.T).DeleteTopic(s.T.Context(), s.Topic); err != nil {
		s.T.Fatal(err)
	}
}

// makeTopic makes the topic again, which takes until the broker has forgotten the old one.
func (s *scene) makeTopic() {
	s.T.Helper()
	admin := s.Broker.Admin(s.T)
	relayproc.Until(s.T, "a new topic", func() error {
		_, err := admin.CreateTopic(s.T.Context(), 6, -1, nil, s.Topic)
		return err
	})
}

// onlyNew fails unless the topic holds, once and in order, what was written after the first 301 events: 100 operations, the
// one of recovered, and version 2 of one that began in the old topic.
func (s *scene) onlyNew(old uuid.UUID) {
	s.T.Helper()
	var fresh, continued = s.Events()[:0], 0
	for _, e := range s.Events() {
		if e.OperationID != old {
			fresh = append(fresh, e)
		} else if continued++; e.StateVersion != 2 {
			s.T.Errorf("version %d of the old operation came, want 2", e.StateVersion)
		}
	}
	relayproc.ExactlyOnce(s.T, fresh, 301)
	if continued != 1 {
		s.T.Errorf("the old operation went on %d times, want once", continued)
	}
}

// A topic's limit is lowered under a running relay: of the events that are sent then, in one batch with others, the one that
// is too large is parked, and holds up its own operation only. After the limit is raised again somebody retries it.
func TestTopicLimitIsLowered(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Fill(s.acme, 10, 3)
	// Brokers judge what is compressed, which could be small enough.
	s.run(quickRetry, map[string]string{"RELAY_KAFKA_COMPRESSION": "none"})
	s.Drained("true")

	s.limit("20000")
	large := s.fillWithLarge(50)
	s.Drained("operation_id <> $1", large)
	relayproc.Until(t, "the large event to be parked", func() error {
		if n := s.CountRows("next_attempt_at = 'infinity' and last_error like '%max.message.bytes%'"); n == 0 {
			return errors.New("it is not parked")
		}
		return nil
	})
	states := s.states(large)
	if want := "exported parked waiting"; states != want {
		t.Errorf("the versions of the operation are %s, want %s", states, want)
	}
	if n := s.CountRows("next_attempt_at = 'infinity'"); n != 1 {
		t.Errorf("%d rows are parked, want 1", n)
	}

	s.limit("1000000")
	id := s.Count("select id from aksara_operation_outbox where next_attempt_at = 'infinity'")
	if _, stderr, status := relayproc.Command(t, s.Env("acme"), "parked", "retry", strconv.Itoa(id), "--tenant", "acme"); status != 0 {
		t.Fatalf("parked retry: status %d\n%s", status, stderr)
	}
	relayproc.Until(t, "the event to be dealt with", func() error {
		if s.CountRows("id = $1 and exported_at is null and next_attempt_at < 'infinity'", id) > 0 {
			return errors.New("it is not")
		}
		return nil
	})
	if s.CountRows("id = $1 and exported_at is null", id) > 0 {
		t.Fatal("the event was parked again although it fits now")
	}
	s.deliveredOnce()
}

// limit sets the topic's max.message.bytes.
func (s *scene) limit(bytes string) {
	s.T.Helper()
	change := []kadm.AlterConfig{{Name: "max.message.bytes", Value: &bytes}}
	answers, err := s.Broker.Admin(s.T).AlterTopicConfigs(s.T.Context(), change, s.Topic)
	if err == nil {
		_, err = answers.On(s.Topic, nil)
	}
	if err != nil {
		s.T.Fatal(err)
	}
}

// fillWithLarge writes operations of three versions each in one transaction, and gives the one whose second is large.
func (s *scene) fillWithLarge(operations int) (large uuid.UUID) {
	s.T.Helper()
	err := pgx.BeginFunc(s.T.Context(), s.Pool, func(tx pgx.Tx) error {
		if err := relayproc.App.Fill(s.T.Context(), tx, s.acme, operations, 3); err != nil {
			return err
		}
		return tx.QueryRow(s.T.Context(), `update aksara_operation_outbox
			set payload = payload || jsonb_build_object('more', repeat(md5(id::text), 1000))
			where id = (select min(id) from aksara_operation_outbox where exported_at is null and payload->>'state_version' = '2')
			returning operation_id`).Scan(&large)
	})
	if err != nil {
		s.T.Fatal(err)
	}
	return large
}

// states tells what the versions of an operation are.
func (s *scene) states(operation uuid.UUID) (states string) {
	s.T.Helper()
	err := s.Pool.QueryRow(s.T.Context(), `select string_agg(case when exported_at is not null then 'exported'
			when next_attempt_at = 'infinity' then 'parked' else 'waiting' end, ' ' order by id)
		from aksara_operation_outbox where operation_id = $1`, operation).Scan(&states)
	if err != nil {
		s.T.Fatal(fmt.Errorf("read operation: %w", err))
	}
	return states
}
