package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/sample"
	"outboxrelay/migrations"
)

// namespace is that of the relay under test.
const namespace = "orders"

var app = sample.Application{Namespace: namespace}

// fixture is a database, a topic on a real broker, and a restricted role for the relay.
type fixture struct {
	t      *testing.T
	db     *pgtest.DB
	pool   *pgxpool.Pool // as superuser
	broker *kafkatest.Broker
	topic  string
	role   string // the relay's connection string
}

var standalone = pgtest.Setup{Name: "e2e", Apply: func(ctx context.Context, url string) error {
	return migrations.StandaloneSchema(ctx, url, "public")
}}

// newFixture makes a fixture on the given kind of database.
func newFixture(t *testing.T, setup pgtest.Setup) *fixture {
	t.Helper()
	f := &fixture{t: t, db: pgtest.Database(t, setup), broker: kafkatest.Plain(t)}
	f.pool = f.db.Pool(t)
	f.topic = f.broker.Topic(t, 6, nil)
	f.role = f.db.Role(t, "relay", "")
	conn := f.db.Conn(t)
	role, err := pgx.ParseConfig(f.role)
	if err != nil {
		t.Fatal(err)
	}
	if err := migrations.Run(t.Context(), conn, migrations.Options{GrantTo: role.User}); err != nil {
		t.Fatal(err)
	}
	return f
}

// env is the relay's environment; tenants are separated by commas.
func (f *fixture) env(tenants string, more ...map[string]string) map[string]string {
	env := map[string]string{
		"RELAY_DATABASE_URL":              f.role,
		"RELAY_NAMESPACE":                 namespace,
		"RELAY_TENANTS":                   tenants,
		"RELAY_KAFKA_BROKERS":             strings.Join(f.broker.Addrs, ","),
		"RELAY_KAFKA_TOPIC":               f.topic,
		"RELAY_KAFKA_MIN_INSYNC_REPLICAS": "1",
		"RELAY_HTTP_ADDRESS":              "127.0.0.1:0",
		"RELAY_WORKER_ID":                 "e2e",
	}
	for _, m := range more {
		maps.Copy(env, m)
	}
	for name, value := range env {
		if value == "" {
			delete(env, name)
		}
	}
	return env
}

// quickLease is for tests that wait for leases to end.
var quickLease = map[string]string{"RELAY_CLAIM_LEASE": "9s", "RELAY_KAFKA_DELIVERY_TIMEOUT": "1s"}

// fill writes operations of one scope with that many transitions each.
func (f *fixture) fill(scope envelope.Scope, operations, versions int) {
	f.t.Helper()
	if err := app.Fill(f.t.Context(), f.pool, scope, operations, versions); err != nil {
		f.t.Fatal(err)
	}
}

// count asks for one number.
func (f *fixture) count(query string, args ...any) (n int) {
	f.t.Helper()
	if err := f.pool.QueryRow(f.t.Context(), query, args...).Scan(&n); err != nil {
		f.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// drained waits until a condition on outbox rows holds for none that is unexported.
func (f *fixture) drained(where string, args ...any) {
	f.t.Helper()
	query := "select count(*) from aksara_operation_outbox where exported_at is null and (" + where + ")"
	until(f.t, "all events to be exported", func() error {
		if n := f.count(query, args...); n > 0 {
			return fmt.Errorf("%d are left", n)
		}
		return nil
	})
}

// records reads the whole topic.
func (f *fixture) records() []*kgo.Record {
	f.t.Helper()
	return f.broker.All(f.t, f.topic)
}

// events reads the whole topic as events; every record must be one.
func (f *fixture) events() []envelope.Event {
	f.t.Helper()
	var events []envelope.Event
	for _, r := range f.records() {
		events = append(events, parse(f.t, r))
	}
	return events
}

func parse(t *testing.T, r *kgo.Record) envelope.Event {
	t.Helper()
	record := envelope.Record{Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		record.Headers = append(record.Headers, envelope.Header{Key: h.Key, Value: h.Value})
	}
	e, err := envelope.Parse(record)
	if err != nil {
		t.Fatalf("record at %s/%d/%d is no event: %v", r.Topic, r.Partition, r.Offset, err)
	}
	return e
}

// inOrder fails unless the first deliveries of each operation are in state version
// order from 1 on without gaps. It gives how often each event came, by source and id.
func inOrder(t *testing.T, events []envelope.Event) map[string]int {
	t.Helper()
	times := map[string]int{}
	last := map[string]int64{}
	for _, e := range events {
		key := e.Source() + " " + e.ID()
		if times[key]++; times[key] > 1 {
			continue
		}
		operation := e.Source() + " " + e.OperationID.String()
		if e.StateVersion != last[operation]+1 {
			t.Fatalf("operation %s: version %d came first after %d", operation, e.StateVersion, last[operation])
		}
		last[operation] = e.StateVersion
	}
	return times
}

// exactlyOnce fails unless so many events came, each once and in order.
func exactlyOnce(t *testing.T, events []envelope.Event, want int) {
	t.Helper()
	times := inOrder(t, events)
	for key, n := range times {
		if n != 1 {
			t.Errorf("event %s came %d times", key, n)
		}
	}
	if len(times) != want {
		t.Errorf("%d events came, want %d", len(times), want)
	}
}

// row is an outbox row with all its columns as text.
type row map[string]string

// rows gives outbox rows in the order of their ids, all columns as text, null as "<null>".
func (f *fixture) rows(where string, args ...any) []row {
	f.t.Helper()
	result, err := f.pool.Query(f.t.Context(), `select key, value from aksara_operation_outbox o,
		lateral jsonb_each_text(to_jsonb(o)) where `+where+` order by id, key`, args...)
	if err != nil {
		f.t.Fatal(err)
	}
	var all []row
	var key string
	var value *string
	_, err = pgx.ForEachRow(result, []any{&key, &value}, func() error {
		if key == "claim_expires_at" { // the first of the columns by name
			all = append(all, row{})
		}
		text := "<null>"
		if value != nil {
			text = *value
		}
		all[len(all)-1][key] = text
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

func tenant(t *testing.T, id string) envelope.Scope {
	t.Helper()
	scope, err := envelope.Tenant(id)
	if err != nil {
		t.Fatal(err)
	}
	return scope
}
