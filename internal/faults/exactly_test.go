package faults_test

import (
	"testing"

	"outboxrelay/internal/moments"
	"outboxrelay/internal/relayproc"
)

// exactly is the environment of exactly-once mode, with a ledger of the test's own.
func (s *scene) exactly() map[string]string {
	s.T.Helper()
	return map[string]string{
		"RELAY_DELIVERY": "exactly-once", "RELAY_INSTANCE": "0",
		"RELAY_TRANSACTIONAL_ID": s.Topic, "RELAY_LEDGER_TOPIC": s.Broker.Topic(s.T, 8, map[string]string{"cleanup.policy": "compact"}),
	}
}

// In exactly-once mode, killed at each moment of what the relay says: each event is there once.
func TestExactlyOnceKilledAtEachMoment(t *testing.T) {
	t.Parallel()
	atEachMoment(t, moments.Transactions(), func(s *scene, m moments.Moment, watch *moments.Watch) { s.onceAfter(m, watch, true) })
}

// The same where only the connection is cut at that moment, so that the relay does not know what became of what it said.
func TestExactlyOnceCutAtEachMoment(t *testing.T) {
	t.Parallel()
	atEachMoment(t, moments.Transactions(), func(s *scene, m moments.Moment, watch *moments.Watch) { s.onceAfter(m, watch, false) })
}

// onceAfter has a relay killed, or cut off, at a moment, and fails unless all events are there once in the end.
func (s *scene) onceAfter(m moments.Moment, watch *moments.Watch, kill bool) {
	s.T.Helper()
	s.Fill(s.acme, 20, 3)
	relay := make(chan *relayproc.Process, 1)
	parked := s.makeWay(m)
	trap := watch.Arm(m, func() {
		if p := <-relay; kill {
			p.Kill()
		}
	})
	env := s.Env("acme", s.exactly(), map[string]string{
		"RELAY_DATABASE_URL": s.watched(watch), "RELAY_KAFKA_CLIENT_ID": m.String(), "RELAY_WORKERS": "1",
	})
	s.relay = relayproc.Start(s.T, env)
	relay <- s.relay
	relayproc.Until(s.T, "the moment "+m.String(), func() error {
		select {
		case <-trap.Sprung():
			return nil
		default:
			return errNotYet
		}
	})
	if kill {
		s.relay = relayproc.Start(s.T, env)
	}
	s.Drained("next_attempt_at < 'infinity'")
	if n := s.CountRows("next_attempt_at = 'infinity'"); n != parked {
		s.T.Errorf("%d rows are parked, want %d", n, parked)
	}
	relayproc.ExactlyOnce(s.T, s.Events(), s.CountRows("true")-parked)
	if status := s.relay.Stop(); status != 0 {
		s.T.Errorf("relay ended with status %d", status)
	}
}

// makeWay sees to it that a moment will come, and gives how many rows will be parked.
func (s *scene) makeWay(m moments.Moment) (parked int) {
	s.T.Helper()
	switch m.What {
	case moments.Payloads:
		s.DB.Exec(s.T, `update aksara_operation_outbox set payload = payload || '{"more": 1e70000}'`)
	case moments.Release:
		s.DB.Exec(s.T, `update aksara_operation_outbox set payload = payload - 'state_version'
			where id = (select max(id) from aksara_operation_outbox)`)
		return 1
	}
	return 0
}
