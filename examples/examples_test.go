package examples

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/relayproc"
)

func TestMain(m *testing.M) { os.Exit(relayproc.Main(m)) }

// tables is a consumer's database, made as README.md says.
var tables = pgtest.Setup{Name: "consumer", Apply: func(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, file := range []string{"../inbox/sql/create.sql", "schema.sql"} {
		sql, err := os.ReadFile(file)
		if err == nil {
			_, err = conn.Exec(ctx, string(sql))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}}

// group is the consumer group of all examples, with another database and topic for each test.
func group(p program) string { return "states-" + p.name }

const (
	tenants    = "acme,eu/west ü 7"
	operations = 30 // of each scope
	versions   = 4
	events     = 3 * operations * versions
)

// A relay is killed after Kafka has acknowledged events and before the table knows, so that its successor sends all of
// them again. Each example is killed itself, between taking an event and its commit. It counts each event once all the
// same, and an event that comes late does not set its operation back.
func TestEachExampleHandlesEachEventOnce(t *testing.T) {
	t.Parallel()
	all := programs(t)
	f := relayproc.New(t, relayproc.Standalone, kafkatest.Plain(t))
	scopes := []envelope.Scope{envelope.NonTenant()}
	for name := range strings.SplitSeq(tenants, ",") {
		scopes = append(scopes, relayproc.Tenant(t, name))
	}
	for _, scope := range scopes {
		f.Fill(scope, operations, versions)
	}
	env := f.Env(tenants, map[string]string{
		"RELAY_NON_TENANT": "true", "RELAY_CLAIM_LEASE": "9s", "RELAY_KAFKA_DELIVERY_TIMEOUT": "1s",
	})

	release := f.HoldMarks()
	relay := relayproc.Start(t, env)
	f.Broker.Consume(t, f.Topic, events)
	relay.Kill()
	release()
	if n := f.CountRows("exported_at is not null"); n > 0 {
		t.Fatalf("%d rows are marked exported, want none", n)
	}

	databases := map[string]*pgtest.DB{}
	for _, p := range all {
		databases[p.name] = pgtest.Database(t, tables)
		killInTransaction(t, f, p, databases[p.name])
		p.start(t, f.Broker.Addrs, f.Topic, group(p), databases[p.name].URL)
	}
	for _, p := range all {
		handled(t, p, databases[p.name], events)
	}

	relayproc.Start(t, env)
	f.Drained("true")
	records := f.Records()
	twice := 0
	for _, times := range relayproc.InOrder(t, relayproc.Events(t, records)) {
		if times > 1 {
			twice++
		}
	}
	if twice != events {
		t.Errorf("%d events came more than once, want all %d", twice, events)
	}
	t.Logf("the topic holds %d records of %d events", len(records), events)
	late := sendLate(t, f)

	for _, p := range all {
		atEnd(t, p, f)
		judge(t, p, databases[p.name], late)
	}
}

// killInTransaction starts an example, and kills it while it is between taking some event and its commit.
func killInTransaction(t *testing.T, f *relayproc.Fixture, p program, db *pgtest.DB) {
	t.Helper()
	conn := db.Conn(t)
	// One of the operations can't be written until this ends.
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	operation := f.Records()[events/2].Key
	if _, err := tx.Exec(t.Context(), "insert into operation_state values ($1, '', '', 0, 0)", string(operation)); err != nil {
		t.Fatal(err)
	}
	first := p.start(t, f.Broker.Addrs, f.Topic, group(p), db.URL)
	watch := db.Conn(t)
	relayproc.Until(t, p.name+" to wait within its transaction", func() error {
		var waiting int
		err := watch.QueryRow(t.Context(), `select count(*) from pg_stat_activity
			where datname = current_database() and $1 = any(pg_blocking_pids(pid))`, conn.PgConn().PID()).Scan(&waiting)
		if err == nil && waiting == 0 {
			err = fmt.Errorf("it does not; its output:\n%s", first.log)
		}
		return err
	})
	first.kill()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s was killed with %d events counted", p.name, counted(t, watch))
}

func counted(t *testing.T, conn *pgx.Conn) (n int) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "select coalesce(sum(events), 0) from operation_state").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// handled waits until an example has counted so many events.
func handled(t *testing.T, p program, db *pgtest.DB, want int) {
	t.Helper()
	conn := db.Conn(t)
	relayproc.Until(t, p.name+" to count all events", func() error {
		if n := counted(t, conn); n < want {
			return fmt.Errorf("%d of %d so far", n, want)
		}
		return nil
	})
}

// sendLate sends versions 1, 3 and then 2 of an operation, which a relay would not do.
func sendLate(t *testing.T, f *relayproc.Fixture) (operation uuid.UUID) {
	t.Helper()
	operation = uuid.New()
	client := f.Broker.Client(t)
	for _, version := range []int{1, 3, 2} {
		e, err := envelope.New(relayproc.Namespace, relayproc.Tenant(t, "acme"), operation, "aksara.operation.transition", time.Now(),
			fmt.Appendf(nil, `{"state_version": %d, "to_state": "state %d"}`, version, version))
		if err != nil {
			t.Fatal(err)
		}
		if err := client.ProduceSync(t.Context(), record(f.Topic, e.Record())).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	return operation
}

func record(topic string, r envelope.Record) *kgo.Record {
	sent := &kgo.Record{Topic: topic, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		sent.Headers = append(sent.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return sent
}

// atEnd waits until an example has read the topic to its end, duplicates and all, and committed that.
func atEnd(t *testing.T, p program, f *relayproc.Fixture) {
	t.Helper()
	admin := f.Broker.Admin(t)
	relayproc.Until(t, p.name+" to read the topic to its end", func() error {
		committed, err := admin.FetchOffsets(t.Context(), group(p))
		if err != nil {
			return err
		}
		ends, err := admin.ListEndOffsets(t.Context(), f.Topic)
		if err != nil {
			return err
		}
		ends.Each(func(end kadm.ListedOffset) {
			at, known := committed.Lookup(end.Topic, end.Partition)
			if end.Offset > 0 && (!known || at.At != end.Offset) {
				err = fmt.Errorf("partition %d is read to %d of %d", end.Partition, at.At, end.Offset)
			}
		})
		return errors.Join(err, ends.Error())
	})
}

// judge looks at an example's table.
func judge(t *testing.T, p program, db *pgtest.DB, late uuid.UUID) {
	t.Helper()
	conn := db.Conn(t)
	rows, err := conn.Query(t.Context(), "select operation, source, state, version, events from operation_state")
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Operation       uuid.UUID
		Source, State   string
		Version, Events int
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]int{}
	for _, got := range all {
		sources[got.Source]++
		want := row{got.Operation, got.Source, "ready", versions, versions}
		if got.Operation == late {
			want = row{late, "/namespaces/orders/tenants/acme", "state 3", 3, 3}
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", p.name, got, want)
		}
	}
	want := map[string]int{
		"/namespaces/orders": operations, "/namespaces/orders/tenants/acme": operations + 1,
		"/namespaces/orders/tenants/eu%2Fwest%20%C3%BC%207": operations,
	}
	if !maps.Equal(sources, want) {
		t.Errorf("%s: operations by source %v, want %v", p.name, sources, want)
	}
}

// An example that meets a version of the envelope that it does not know ends, and neither takes the event nor commits its
// offset.
func TestExamplesStopAtAnUnknownVersion(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Plain(t)
	for _, p := range programs(t) {
		topic, db := broker.Topic(t, 1, nil), pgtest.Database(t, tables)
		e, err := envelope.New("orders", envelope.NonTenant(), uuid.New(), "aksara.operation.transition", time.Now(), []byte(`{"state_version": 1, "to_state": "ready"}`))
		if err != nil {
			t.Fatal(err)
		}
		unknown := record(topic, e.Record())
		last := len(unknown.Headers) - 1
		unknown.Headers[last] = kgo.RecordHeader{Key: envelope.HeaderEnvelope, Value: []byte("2")}
		if err := broker.Client(t).ProduceSync(t.Context(), unknown).FirstErr(); err != nil {
			t.Fatal(err)
		}
		unknownGroup := topic // no other has its name
		if output := p.start(t, broker.Addrs, topic, unknownGroup, db.URL).ended(t); !strings.Contains(output, "envelope") {
			t.Errorf("%s does not say why it ended:\n%s", p.name, output)
		}
		offsets, err := broker.Admin(t).FetchOffsets(t.Context(), unknownGroup)
		if err != nil {
			t.Fatal(err)
		}
		if at, known := offsets.Lookup(topic, 0); known && at.At >= 0 {
			t.Errorf("%s has committed offset %d", p.name, at.At)
		}
		var taken int
		if err := db.Conn(t).QueryRow(t.Context(), "select count(*) from relay_inbox").Scan(&taken); err != nil || taken > 0 {
			t.Errorf("%s has taken %d events, %v", p.name, taken, err)
		}
	}
}

// README.md tells to run what the tests run, and the packages that it tells to install are those of the tests.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{
		"go run ./examples/consumer-go",
		"python examples/consumer-python/consumer.py",
		"java -cp '/tmp/consumer-libs/*' examples/consumer-java/Consumer.java",
	} {
		if !strings.Contains(string(text), "    "+command+"\n") {
			t.Errorf("README.md does not tell of: %s", command)
		}
	}
	for _, file := range []string{"inbox/sql/create.sql", "examples/schema.sql", "examples/consumer-python/requirements.txt", "examples/consumer-java"} {
		if _, err := os.Stat("../" + file); err != nil || !strings.Contains(string(text), file) {
			t.Errorf("README.md does not name %s, or it is not there", file)
		}
	}
	wanted, err := os.ReadFile("consumer-python/requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	installed, err := os.ReadFile("../internal/aksaratest/requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(wanted)) {
		if !strings.Contains(string(installed), "\n"+line) {
			t.Errorf("the tests run with another version than %s", line)
		}
	}
}
