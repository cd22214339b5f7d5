package faults_test

import (
	"errors"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/childproc"
	"outboxrelay/internal/kafkaserver"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/moments"
	"outboxrelay/internal/relayproc"
)

// Killed with kill -9 at each moment of each statement and of sending: nothing is lost or out of order, nothing is parked that
// would not be anyway, and only what the relay held comes again.
func TestKilledAtEachMoment(t *testing.T) {
	t.Parallel()
	atEachMoment(t, moments.All(), (*scene).killedAt)
}

// atEachMoment runs a test for some moments, each with a relay of its own before one broker. The watch is that of the relay
// whose client.id is the moment's name.
func atEachMoment(t *testing.T, all []moments.Moment, test func(*scene, moments.Moment, *moments.Watch)) {
	ports, err := childproc.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	own := kafkatest.Server(t, kafkaserver.Options{Advertised: map[int]int{1: ports[0]}})
	watches := map[string]*moments.Watch{}
	for _, m := range all {
		watches[m.String()] = &moments.Watch{}
	}
	proxy, err := moments.Kafka(childproc.Loopback(ports[0]), own.Server.Addrs()[0], func(id string) *moments.Watch { return watches[id] })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	t.Run("at", func(t *testing.T) { // returns when all have ended, so that the broker outlives them
		for _, m := range all {
			t.Run(m.String(), func(t *testing.T) {
				t.Parallel()
				s := &scene{Fixture: relayproc.New(t, relayproc.Standalone, own.Broker), acme: relayproc.Tenant(t, "acme")}
				test(s, m, watches[m.String()])
			})
		}
	})
}

// comes is how often something may come again.
type comes int

const (
	maybe comes = iota
	never
	surely
)

// again is whether events come again after a kill at a moment.
var again = map[moments.Moment]comes{
	{What: moments.Claim, Stage: moments.Sent}:   never, // nothing was sent yet
	{What: moments.Claim, Stage: moments.Open}:   never,
	{What: moments.Claim, Stage: moments.Done}:   never,
	{What: moments.Produce, Stage: moments.Done}: surely, // brokers have some, and nothing is marked
	{What: moments.Mark, Stage: moments.Sent}:    surely,
	{What: moments.Mark, Stage: moments.Open}:    surely,
}

func (s *scene) killedAt(m moments.Moment, watch *moments.Watch) {
	s.T.Helper()
	s.Fill(s.acme, 20, 3)
	kill, held := s.lieInWait(m, watch)
	env := s.Env("acme", map[string]string{"RELAY_DATABASE_URL": s.watched(watch), "RELAY_KAFKA_CLIENT_ID": m.String(), "RELAY_WORKERS": "1"})
	relay := relayproc.Start(s.T, env)
	kill <- relay
	relayproc.Until(s.T, "the moment "+m.String(), func() error {
		if !relay.Ended() {
			return errNotYet
		}
		return nil
	})
	mayCome := <-held
	s.DB.Exec(s.T, "update aksara_operation_outbox set claim_expires_at = now() where claim_expires_at is not null") // as time would
	s.DB.Exec(s.T, "update aksara_operation_outbox set next_attempt_at = now() where exported_at is null and next_attempt_at < 'infinity'")
	s.relay = relayproc.Start(s.T, env)
	s.Drained("next_attempt_at < 'infinity'")
	s.settled(m, mayCome)
}

var errNotYet = errors.New("it has not come yet")

// watched gives the address of the relay's database behind a proxy that waits for moments.
func (s *scene) watched(watch *moments.Watch) string {
	s.T.Helper()
	address, err := url.Parse(s.Role)
	if err != nil {
		s.T.Fatal(err)
	}
	proxy, err := moments.Postgres("127.0.0.1:0", address.Host, watch)
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() { _ = proxy.Close() })
	address.Host = proxy.Addr()
	return address.String()
}

// lieInWait sees to it that a moment will come, and then kills the relay that is put into kill. What it held is in held.
func (s *scene) lieInWait(m moments.Moment, watch *moments.Watch) (kill chan<- *relayproc.Process, held <-chan map[string]bool) {
	s.T.Helper()
	relay, rows := make(chan *relayproc.Process, 1), make(chan map[string]bool, 1)
	trap := func() {
		(<-relay).Kill()
		rows <- s.held()
	}
	switch m.What {
	case moments.ClaimAbandoned, moments.Renew:
		s.DB.Exec(s.T, `update aksara_operation_outbox
			set claimed_by = 'gone/0123456789abcdef', claim_expires_at = now() - interval '1 second', export_attempts = 1`)
	case moments.Payloads:
		s.DB.Exec(s.T, `update aksara_operation_outbox set payload = payload || '{"more": 1e70000}'`)
	case moments.Release:
		s.DB.Exec(s.T, `update aksara_operation_outbox set payload = payload - 'state_version'
			where id = (select max(id) from aksara_operation_outbox)`)
	case moments.MarkLate:
		watch.Arm(moments.Moment{What: moments.Produce, Stage: moments.Done}, func() {
			s.DB.Exec(s.T, `update aksara_operation_outbox
				set claimed_by = null, claim_expires_at = null, next_attempt_at = now() + interval '1 hour'`)
			watch.Arm(m, trap)
		})
		return relay, rows
	}
	watch.Arm(m, trap)
	return relay, rows
}

// held gives the events that were claimed, and are not marked.
func (s *scene) held() map[string]bool {
	rows, err := s.Pool.Query(s.T.Context(), `select operation_id::text || ':' || (payload->>'state_version')
		from aksara_operation_outbox where exported_at is null and export_attempts > 0 and payload ? 'state_version'`)
	if err != nil {
		s.T.Error(err)
		return nil
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		s.T.Error(err)
	}
	held := map[string]bool{}
	for _, id := range ids {
		held[id] = true
	}
	return held
}

// settled judges what came, after a relay was killed at a moment and another has done the rest.
func (s *scene) settled(m moments.Moment, mayCome map[string]bool) {
	s.T.Helper()
	parked := 0
	if m.What == moments.Release {
		parked = 1 // for a fault of its own
	}
	if n := s.CountRows("next_attempt_at = 'infinity'"); n != parked {
		s.T.Errorf("%d rows are parked, want %d", n, parked)
	}
	events := s.Events()
	if got, want := len(relayproc.InOrder(s.T, events)), s.CountRows("true")-parked; got != want {
		s.T.Errorf("%d events came, want %d", got, want)
	}
	seen, repeated := map[string]bool{}, 0
	for _, e := range events {
		if seen[e.ID()] {
			repeated++
			if !mayCome[e.ID()] {
				s.T.Errorf("event %s came again, and was marked or not claimed when the relay was killed", e.ID())
			}
		}
		seen[e.ID()] = true
	}
	if expect := again[m]; expect == never && repeated > 0 || expect == surely && repeated == 0 {
		s.T.Errorf("%d events came again", repeated)
	}
	s.ready() // before that a signal ends it at once
	if status := s.relay.Stop(); status != 0 {
		s.T.Errorf("relay ended with status %d", status)
	}
}
