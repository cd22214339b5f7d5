package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"

	"outboxrelay/internal/childproc"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/pgtest"
	"outboxrelay/migrations"
	"outboxrelay/relay"
)

// untouched makes sure that no event was claimed.
func (s *stage) untouched(t *testing.T) {
	t.Helper()
	var claimed int
	err := s.db.Conn(t).QueryRow(t.Context(), `select count(*) from public.aksara_operation_outbox
		where export_attempts > 0 or claimed_by is not null or exported_at is not null or last_error is not null`).Scan(&claimed)
	if err != nil {
		t.Fatal(err)
	}
	if claimed > 0 {
		t.Errorf("%d events were touched although they can't be sent", claimed)
	}
}

// What can be mended without the relay is waited for: it isn't ready and claims
// nothing, and goes on by itself.
func TestRunWaitsAndGoesOnByItself(t *testing.T) {
	t.Parallel()
	for _, c := range waits() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.fill(t, namespace)
			c.broken(t, s)
			relay := startRelay(t, s.env)
			relay.awaitReason(t, c.reason)
			s.untouched(t)
			relay.tellsAsThePageSays(t, c.side)
			c.mend(t, s)
			relay.delivered(t, s.broker.Broker, s.topic)
			eventually(t, func() error { return relay.shows("relay_database_up 1", "relay_broker_paused 0") })
		})
	}
}

// wait is something that keeps a relay from working, and how it is mended.
type wait struct {
	name         string
	broken, mend func(*testing.T, *stage)
	reason       string // why it says that it isn't ready
	side         side
}

// side is where a fault lies, and so how it is told of.
type side struct{ message, metric string }

var (
	ofDatabase = side{troubleText(relay.DatabaseTrouble), "relay_database_up 0"}
	ofBroker   = side{troubleText(relay.SinkTrouble), "relay_broker_paused 1"}
)

// tellsAsThePageSays waits until the relay tells of a fault as the table in docs/operations.md has it.
func (r *running) tellsAsThePageSays(t *testing.T, side side) {
	t.Helper()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	metric, value, _ := strings.Cut(side.metric, " ")
	if row := regexp.MustCompile("(?m)^\\|.*`" + regexp.QuoteMeta(side.message) + "`.*`" + metric + "` " + value + ".*503 \\|$"); !row.Match(page) {
		t.Errorf("docs/operations.md does not tell of %+v", side)
	}
	eventually(t, func() error {
		if !strings.Contains(r.log.String(), `"message":"`+side.message+`"`) {
			return fmt.Errorf("the log lacks %q", side.message)
		}
		return r.shows(side.metric)
	})
	if body, err := r.get("/livez"); err != nil {
		t.Errorf("/livez: %v %s", err, body)
	}
}

func waits() []wait {
	return []wait{
		{"missing table", func(t *testing.T, s *stage) {
			s.change(t, `alter table public.aksara_operations rename to away`)
		}, func(t *testing.T, s *stage) {
			s.change(t, `alter table public.away rename to aksara_operations`)
		}, "has no table aksara_operations", ofDatabase},
		{"wrong column", func(t *testing.T, s *stage) {
			s.change(t, `alter table public.aksara_operations rename application_namespace to namespace`)
		}, func(t *testing.T, s *stage) {
			s.change(t, `alter table public.aksara_operations rename namespace to application_namespace`)
		}, "aksara_operations.application_namespace is missing", ofDatabase},
		{"missing grant", func(t *testing.T, s *stage) {
			s.change(t, `revoke update (exported_at) on public.aksara_operation_outbox from ROLE`)
		}, func(t *testing.T, s *stage) { s.grant(t) }, "grant update (exported_at)", ofDatabase},
		{"role may not log in", func(t *testing.T, s *stage) {
			s.change(t, `alter role ROLE nologin`)
		}, func(t *testing.T, s *stage) {
			s.change(t, `alter role ROLE login`)
		}, "RELAY_DATABASE_URL", ofDatabase},
		{"policy hides rows from claims", func(t *testing.T, s *stage) {
			s.change(t, `alter policy aksara_operation_outbox_tenant_policy on public.aksara_operation_outbox to pg_monitor`)
		}, func(t *testing.T, s *stage) {
			s.change(t, `alter policy aksara_operation_outbox_tenant_policy on public.aksara_operation_outbox to public`)
		}, "no policy lets role", ofDatabase},
		{"missing topic", func(t *testing.T, s *stage) {
			s.topic = kafkatest.Name("later")
			s.env["RELAY_KAFKA_TOPIC"] = s.topic
		}, func(t *testing.T, s *stage) {
			s.broker.CreateTopic(t, s.topic, 1, nil)
		}, "does not exist", ofBroker},
		{"too few in-sync replicas", func(t *testing.T, s *stage) {
			s.broker = kafkatest.Fake(t, kfake.NumBrokers(3), kfake.SeedTopics(1, s.topic))
			s.env["RELAY_KAFKA_BROKERS"] = strings.Join(s.broker.Addrs, ",")
			s.env["RELAY_KAFKA_MIN_INSYNC_REPLICAS"] = "2"
			s.minInsync(t, "1")
		}, func(t *testing.T, s *stage) { s.minInsync(t, "2") }, "set RELAY_KAFKA_MIN_INSYNC_REPLICAS=1", ofBroker},
	}
}

// minInsync sets what the topic promises.
func (s *stage) minInsync(t *testing.T, value string) {
	t.Helper()
	configs := []kadm.AlterConfig{{Name: "min.insync.replicas", Value: &value}}
	answers, err := s.broker.Admin(t).AlterTopicConfigs(t.Context(), configs, s.topic)
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range answers {
		if answer.Err != nil {
			t.Fatal(answer.Err)
		}
	}
}

// What only weakens the relay is a warning in its log.
func TestRunWarnsAndWorks(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.fill(t, namespace)
	s.change(t, `drop index public.relay_outbox_operation; alter role ROLE bypassrls;
		alter table public.aksara_operation_outbox disable row level security`)
	relay := startRelay(t, s.env)
	relay.delivered(t, s.broker.Broker, s.topic)
	for _, part := range []string{"relay_outbox_operation is missing", "has BYPASSRLS", "row security is off on aksara_operation_outbox"} {
		if n := strings.Count(relay.log.String(), part); n != 1 {
			t.Errorf("the log says %d times %q, want once", n, part)
		}
	}
}

func TestRunWaitsForADatabaseThatIsDown(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	topic := kafkatest.Name("events")
	broker := kafkatest.Fake(t, kfake.SeedTopics(1, topic))
	s := &stage{topic: topic, broker: broker, env: variables(server.URL("postgres"), broker.Addrs, topic)}
	if err := migrations.StandaloneSchema(t.Context(), server.URL("postgres"), "public"); err != nil {
		t.Fatal(err)
	}
	s.db = &pgtest.DB{Name: "postgres", URL: server.URL("postgres")}
	s.fill(t, namespace)
	s.change(t, `checkpoint`) // such a server may lose its last commits
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	relay := startRelay(t, s.env)
	relay.awaitReason(t, "host and port in RELAY_DATABASE_URL")
	relay.tellsAsThePageSays(t, ofDatabase)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	relay.delivered(t, broker.Broker, topic)
}

// In exactly-once mode a server that forgets commits is waited for, also if it becomes one while the relay runs.
func TestRunWaitsForADurableDatabase(t *testing.T) {
	t.Parallel()
	s := newExactStage(t)
	server := pgtest.Server(t)
	s.db = &pgtest.DB{Name: "postgres", URL: server.URL("postgres")}
	s.env["RELAY_DATABASE_URL"] = s.db.URL
	s.env["RELAY_KAFKA_DELIVERY_TIMEOUT"], s.env["RELAY_CLAIM_LEASE"] = "1s", "9s" // so that it looks often
	if err := migrations.StandaloneSchema(t.Context(), s.db.URL, "public"); err != nil {
		t.Fatal(err)
	}
	fsync := func(value string) {
		s.change(t, "alter system set fsync = "+value)
		s.change(t, "select pg_reload_conf()")
	}
	fsync("off")
	eventually(t, func() error {
		if status, out, errs := runCommand(t, s.env, "check"); status != statusFault || !strings.Contains(out, "fail  durability: the server has fsync=off") {
			return fmt.Errorf("relay check: status %d, %s%s", status, out, errs)
		}
		return nil
	})
	s.fill(t, namespace)
	relay := startRelay(t, s.env)
	relay.awaitReason(t, "set fsync=on")
	s.untouched(t)
	relay.tellsAsThePageSays(t, ofDatabase)
	fsync("on")
	relay.delivered(t, s.broker.Broker, s.topic)

	fsync("off")
	relay.awaitReason(t, "set fsync=on") // no slot is held then, so nothing can be claimed
	s.fill(t, namespace)
	eventually(t, func() error { return relay.shows(`relay_slots{state="held"} 0`) })
	if n := s.due(t); n != 3 {
		t.Errorf("%d events are due and not claimed, want the 3 that are new", n)
	}
	fsync("on")
	if records := s.broker.Consume(t, s.topic, 6); len(records) != 6 {
		t.Errorf("%d events came, want 6", len(records))
	}
}

// due is how many events no claim was ever made of.
func (s *stage) due(t *testing.T) (n int) {
	t.Helper()
	err := s.db.Conn(t).QueryRow(t.Context(), `select count(*) from public.aksara_operation_outbox where export_attempts = 0`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRunWaitsForABrokerThatIsDown(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.fill(t, namespace)
	ports, err := childproc.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	s.env["RELAY_KAFKA_BROKERS"] = childproc.Loopback(ports[0])
	relay := startRelay(t, s.env)
	relay.awaitReason(t, "broker")
	s.untouched(t)
	relay.tellsAsThePageSays(t, ofBroker)
	broker := kafkatest.Fake(t, kfake.Ports(ports[0]), kfake.SeedTopics(1, s.topic))
	relay.delivered(t, broker.Broker, s.topic)
}
