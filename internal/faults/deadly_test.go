package faults_test

import (
	"errors"
	"testing"
	"time"

	"outboxrelay/internal/relayproc"
)

// mostEnds is after how many ends of the process a row that causes them is parked: one in a claim like any other, one
// each among 200, and among ten, and three alone.
const mostEnds = 6

// One row's payload is more than the process can hold, and ends it each time. The relay is started again each time, as an
// orchestrator does: that row alone is parked, soon, and all others of its tenant and of another are delivered. Small events
// need half of either limit, in KiB; the payload of 42 MB is held once while it is read, and several times while it is sent.
func TestRowThatEndsTheProcess(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{
		"while it is read": 110 << 10,
		"while it is sent": 170 << 10,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.limit("60000000") // so that the topic has room for it
			s.Fill(s.acme, 25, 2)
			s.Fill(relayproc.Tenant(t, "globex"), 25, 2)
			deadly := s.makeDeadly()
			ends := s.runUntilParked(limit)
			t.Logf("the process ended %d times", ends)
			if ends < 3 {
				t.Errorf("the row was parked after %d ends of the process, want three that had it alone", ends)
			}
			s.onlyParked(deadly)
		})
	}
}

// makeDeadly gives a row in the middle of a tenant's a payload that is small in the table and huge as text.
func (s *scene) makeDeadly() (id int) {
	s.T.Helper()
	return s.Count(`update aksara_operation_outbox
		set payload = payload || jsonb_build_object('more', (select jsonb_agg('1e100000'::jsonb) from generate_series(1, 420)))
		where id = (select id from aksara_operation_outbox where tenant_scope = 'acme' and payload->>'state_version' = '1'
			order by id limit 1 offset 12)
		returning id`)
}

// runUntilParked runs a relay with little memory, and again each time that it ends, until a row is parked. The claims of one
// that ended run out at once; to wait for that would show no more.
func (s *scene) runUntilParked(limit int) (ends int) {
	s.T.Helper()
	env := s.Env("acme,globex", map[string]string{"RELAY_BATCH_BYTES": "1GiB"}, // so that the row is among others at first
		map[string]string{"RELAY_CLAIM_LEASE": "11s", "RELAY_KAFKA_DELIVERY_TIMEOUT": "2s"}) // so that it is tried alone soon
	s.relay = relayproc.StartLimited(s.T, limit, env)
	relayproc.Within(s.T, 3*time.Minute, "the row to be parked", func() error {
		if s.relay.Ended() {
			if ends++; ends > mostEnds {
				s.T.Fatalf("the process ended %d times, and no row is parked; the rows left were claimed %d times at most",
					ends, s.Count("select max(export_attempts) from aksara_operation_outbox where exported_at is null"))
			}
			s.DB.Exec(s.T, "update aksara_operation_outbox set claim_expires_at = now() where claimed_by is not null")
			s.relay = relayproc.StartLimited(s.T, limit, env)
		}
		if s.CountRows("next_attempt_at = 'infinity'") == 0 {
			return errors.New("none is")
		}
		return nil
	})
	return ends
}

// onlyParked fails unless the row was parked for having ended the process, and all other operations are delivered.
func (s *scene) onlyParked(deadly int) {
	s.T.Helper()
	s.Drained("operation_id <> (select operation_id from aksara_operation_outbox where id = $1)", deadly)
	s.recovered()
	if n := s.CountRows("next_attempt_at = 'infinity' and id = $1 and strpos(last_error, 'held this event alone') > 0", deadly); n != 1 {
		s.T.Error("the row that ended the process is not parked for that")
	}
	if n := s.CountRows("next_attempt_at = 'infinity'"); n != 1 {
		s.T.Errorf("%d rows are parked, want 1", n)
	}
	if got, want := len(relayproc.InOrder(s.T, s.Events())), s.CountRows("true")-2; got != want {
		s.T.Errorf("%d events came, want the %d of all operations but one", got, want)
	}
	if status := s.relay.Stop(); status != 0 {
		s.T.Errorf("relay ended with status %d", status)
	}
}
