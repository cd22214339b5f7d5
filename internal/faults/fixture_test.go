package faults_test

import (
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/pgserver"
	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/relayproc"
)

func TestMain(m *testing.M) { os.Exit(relayproc.Main(m)) }

// lengthy makes faults last, and backlogs grow, as they may in production, instead of just so much that they are felt.
var lengthy = flag.Bool("lengthy", false, "let outages last and backlogs be long; takes half an hour")

// size is how many, usually and when it takes long.
func size(usual, long int) int {
	if *lengthy {
		return long
	}
	return usual
}

// lasts lets a fault go on for a time, if the tests may take long. The relay stays alive meanwhile.
func (s *scene) lasts(d time.Duration) {
	s.T.Helper()
	if !*lengthy {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); <-tick.C {
		s.alive()
	}
}

// recovery is how soon after the end of a fault new events must come through.
const recovery = 15 * time.Second

// brokerRecovery is that for brokers, which take their time themselves: a cluster of three on one machine elects leaders, and
// catches up, while clients learn of it by asking again. allBrokersRecovery is that for a cluster that comes up from nothing:
// usually it takes a second, but 27 s were seen on two busy cores.
const (
	brokerRecovery     = 30 * time.Second
	allBrokersRecovery = time.Minute
)

// shortLease is for tests in which a claim may be orphaned. It is longer than their faults last: a delivered row that can't
// be marked before its lease ends comes twice, and rightly so.
var shortLease = map[string]string{"RELAY_CLAIM_LEASE": "15s", "RELAY_KAFKA_DELIVERY_TIMEOUT": "2s"}

// scene is a fixture with a tenant's events, and the relay that delivers them.
type scene struct {
	*relayproc.Fixture
	acme  envelope.Scope
	relay *relayproc.Process // once run
}

// newScene makes a scene on the shared servers.
func newScene(t *testing.T) *scene {
	t.Helper()
	return &scene{Fixture: relayproc.New(t, relayproc.Standalone, kafkatest.Plain(t)), acme: relayproc.Tenant(t, "acme")}
}

// newSceneOnServer makes a scene on a PostgreSQL of its own, which keeps what it has committed when it is killed.
func newSceneOnServer(t *testing.T) (*scene, *pgserver.Server) {
	t.Helper()
	server := pgtest.Server(t, "synchronous_commit=on")
	address := server.URL("postgres")
	if err := relayproc.Standalone.Apply(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	db := &pgtest.DB{Name: "postgres", URL: address}
	db.Exec(t, "create role relay login")
	kafka := kafkatest.Plain(t)
	f := &relayproc.Fixture{T: t, DB: db, Pool: db.Pool(t), Broker: kafka, Topic: kafka.Topic(t, 6, nil), Role: asUser(t, address, "relay")}
	f.Grant()
	return &scene{Fixture: f, acme: relayproc.Tenant(t, "acme")}, server
}

func asUser(t *testing.T, address, user string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.User(user)
	return parsed.String()
}

// run starts the relay.
func (s *scene) run(more ...map[string]string) {
	s.T.Helper()
	s.relay = relayproc.Start(s.T, s.Env("acme", more...))
}

// exported counts delivered rows.
func (s *scene) exported() int { return s.CountRows("exported_at is not null") }

// progress waits until so many more rows are exported.
func (s *scene) progress(rows int) {
	s.T.Helper()
	before := s.exported()
	relayproc.Until(s.T, "some events to be exported", func() error {
		if n := s.exported() - before; n < rows {
			return fmt.Errorf("%d so far", n)
		}
		return nil
	})
}

// ready waits until the relay says that it is ready.
func (s *scene) ready() {
	s.T.Helper()
	relayproc.Until(s.T, "the relay to be ready", func() error {
		if status, body := s.relay.Get("/readyz"); status != http.StatusOK {
			return fmt.Errorf("status %d, %s", status, body)
		}
		return nil
	})
}

// What a relay says when it is not ready.
const (
	database = "the database does not do what is needed"
	broker   = "no event can be sent to Kafka"
)

// unready waits until the relay says that it is not ready, and why. It is alive nevertheless: to start it again would not help.
func (s *scene) unready(why string) {
	s.T.Helper()
	relayproc.Until(s.T, "the relay to notice", func() error {
		if status, body := s.relay.Get("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, why) {
			return fmt.Errorf("status %d, %s, want that %s", status, body, why)
		}
		return nil
	})
	s.alive()
}

// alive fails unless the relay says that it is alive.
func (s *scene) alive() {
	s.T.Helper()
	if status, body := s.relay.Get("/livez"); status != http.StatusOK {
		s.T.Errorf("/livez: status %d, %s", status, body)
	}
}

// recovered fails unless an event that is written now comes through soon.
func (s *scene) recovered() { s.T.Helper(); s.recoveredWithin(recovery) }

func (s *scene) recoveredWithin(recovery time.Duration) {
	s.T.Helper()
	began := time.Now()
	operation, err := relayproc.App.Admit(s.T.Context(), s.Pool, s.acme)
	for err != nil && time.Since(began) < recovery { // the application's own connections may be broken
		operation, err = relayproc.App.Admit(s.T.Context(), s.Pool, s.acme)
	}
	if err != nil {
		s.T.Fatalf("write an event after the fault: %v", err)
	}
	exported := "operation_id = $1 and exported_at is not null"
	if *lengthy { // what was written during the fault goes first, and takes its time
		exported = "exported_at > (select created_at from aksara_operation_outbox where operation_id = $1)"
	}
	relayproc.Within(s.T, recovery-time.Since(began), "an event that was written after the fault", func() error {
		if n := s.CountRows(exported, operation); n == 0 {
			return fmt.Errorf("it is not exported")
		}
		return nil
	})
	s.T.Logf("recovered after %s", time.Since(began).Round(time.Millisecond))
}

// deliveredOnce waits until all is exported, and fails unless the topic holds the event of each row, once and in order.
func (s *scene) deliveredOnce() {
	s.T.Helper()
	s.Drained("true")
	relayproc.ExactlyOnce(s.T, s.Events(), s.CountRows("true"))
	s.clean()
}

// deliveredInOrder is deliveredOnce for faults that leave an event's outcome in doubt, so that it may come twice.
func (s *scene) deliveredInOrder() {
	s.T.Helper()
	s.Drained("true")
	times := relayproc.InOrder(s.T, s.Events())
	if want := s.CountRows("true"); len(times) != want {
		s.T.Errorf("%d events came, want %d", len(times), want)
	}
	s.clean()
}

// clean fails unless rows are left as exported rows are, and the relay ends well.
func (s *scene) clean() {
	s.T.Helper()
	if n := s.CountRows("claimed_by is not null or claim_expires_at is not null or last_error is not null"); n > 0 {
		s.T.Errorf("%d exported rows carry a claim or an error", n)
	}
	if status := s.relay.Stop(); status != 0 {
		s.T.Errorf("relay ended with status %d", status)
	}
}

// quiet fails if a relay has logged trouble.
func (s *scene) quiet(p *relayproc.Process) {
	s.T.Helper()
	for line := range strings.Lines(p.Log.String()) {
		if strings.Contains(line, `"level":"error"`) {
			s.T.Errorf("relay logged: %s", line)
		}
	}
}

// unequal is an error unless there are as many as wanted.
func unequal(want, got int) error {
	if got != want {
		return fmt.Errorf("%d so far, want %d", got, want)
	}
	return nil
}
