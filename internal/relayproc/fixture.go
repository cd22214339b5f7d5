package relayproc

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

// Namespace is that of the relay under test.
const Namespace = "orders"

// App is the application under that namespace.
var App = sample.Application{Namespace: Namespace}

// Standalone is a database with an outbox of its own, without Aksara.
var Standalone = pgtest.Setup{Name: "standalone", Apply: func(ctx context.Context, url string) error {
	return migrations.StandaloneSchema(ctx, url, "public")
}}

// Fixture is a database with an outbox, a topic on a real broker, and a restricted role for the relay.
type Fixture struct {
	T      *testing.T
	DB     *pgtest.DB
	Pool   *pgxpool.Pool // as superuser
	Broker *kafkatest.Broker
	Topic  string
	Role   string // the relay's connection string
}

// New makes a fixture on the given kind of database, with a topic of six partitions.
func New(t *testing.T, setup pgtest.Setup, broker *kafkatest.Broker) *Fixture {
	t.Helper()
	db := pgtest.Database(t, setup)
	f := &Fixture{T: t, DB: db, Pool: db.Pool(t), Broker: broker, Topic: broker.Topic(t, 6, nil), Role: db.Role(t, "relay", "")}
	f.Grant()
	return f
}

// Grant gives the relay's role what it needs.
func (f *Fixture) Grant() {
	f.T.Helper()
	role, err := pgx.ParseConfig(f.Role)
	if err != nil {
		f.T.Fatal(err)
	}
	if err := migrations.Run(f.T.Context(), f.DB.Conn(f.T), migrations.Options{GrantTo: role.User}); err != nil {
		f.T.Fatal(err)
	}
}

// Env is the relay's environment; tenants are separated by commas. An empty value takes a variable out.
func (f *Fixture) Env(tenants string, more ...map[string]string) map[string]string {
	env := map[string]string{
		"RELAY_DATABASE_URL":              f.Role,
		"RELAY_NAMESPACE":                 Namespace,
		"RELAY_TENANTS":                   tenants,
		"RELAY_KAFKA_BROKERS":             strings.Join(f.Broker.Addrs, ","),
		"RELAY_KAFKA_TOPIC":               f.Topic,
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

// Fill writes operations of one scope with that many transitions each.
func (f *Fixture) Fill(scope envelope.Scope, operations, versions int) {
	f.T.Helper()
	if err := App.Fill(f.T.Context(), f.Pool, scope, operations, versions); err != nil {
		f.T.Fatal(err)
	}
}

// Count asks for one number.
func (f *Fixture) Count(query string, args ...any) (n int) {
	f.T.Helper()
	if err := f.Pool.QueryRow(f.T.Context(), query, args...).Scan(&n); err != nil {
		f.T.Fatalf("%s: %v", query, err)
	}
	return n
}

// CountRows counts outbox rows.
func (f *Fixture) CountRows(where string, args ...any) int {
	f.T.Helper()
	return f.Count("select count(*) from aksara_operation_outbox where "+where, args...)
}

// Drained waits until a condition on outbox rows holds for none that is unexported, as long as they get fewer.
func (f *Fixture) Drained(where string, args ...any) {
	f.T.Helper()
	left := func() int { return f.CountRows("exported_at is null and ("+where+")", args...) }
	for least := left(); least > 0; {
		Until(f.T, "more events to be exported", func() error {
			n := left()
			if n >= least {
				return fmt.Errorf("%d are left", n)
			}
			least = n
			return nil
		})
	}
}

// Records reads the whole topic.
func (f *Fixture) Records() []*kgo.Record {
	f.T.Helper()
	return f.Broker.All(f.T, f.Topic)
}

// Events reads the whole topic as events; every record must be one.
func (f *Fixture) Events() []envelope.Event {
	f.T.Helper()
	return Events(f.T, f.Records())
}
