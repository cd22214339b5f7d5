package docstest

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"outboxrelay/envelope"
	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/relayproc"
)

// What the page tells to do with parked events, with some that are. It needs no broker.
func TestParkedPage(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t, relayproc.Standalone)
	s := &scene{t: t, dir: t.TempDir()}
	s.program()
	s.env = append(s.env, "RELAY_DATABASE_URL="+db.URL, "RELAY_NAMESPACE="+relayproc.App.Namespace, "RELAY_TENANTS=acme",
		"RELAY_NON_TENANT=true", "RELAY_KAFKA_BROKERS=localhost:9092")
	var err error
	if s.db, err = pgx.Connect(t.Context(), db.URL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.db.Close(context.Background()) })
	for _, scope := range []envelope.Scope{relayproc.Tenant(t, "acme"), envelope.NonTenant()} {
		if err := relayproc.App.Fill(t.Context(), s.db, scope, 2, 3); err != nil {
			t.Fatal(err)
		}
	}
	var row int64
	var other uuid.UUID
	if err := s.db.QueryRow(t.Context(), `select min(id), (array_agg(operation_id order by id desc))[1]
		from aksara_operation_outbox where tenant_scope = 'acme'`).Scan(&row, &other); err != nil {
		t.Fatal(err)
	}
	s.names = strings.NewReplacer("4711", strconv.FormatInt(row, 10), "6f1c0d3e-8a55-4d0f-9a67-0d5b6f1a2c3d", other.String())

	for _, b := range s.blocks("parked.md") {
		db.Exec(t, "update aksara_operation_outbox set next_attempt_at = 'infinity', last_error = 'the reason' where exported_at is null")
		for line := range strings.Lines(b.text) {
			if out := s.shell(line); strings.TrimSpace(out) == "" {
				t.Errorf("%s prints nothing", line)
			}
		}
	}
	var discarded string
	if err := s.db.QueryRow(t.Context(), "select last_error from aksara_operation_outbox where id = $1 and exported_at is not null", row).Scan(&discarded); err != nil {
		t.Fatal(err)
	}
	if discarded != "discarded: test data, agreed with the owner" {
		t.Errorf("the row says %q", discarded)
	}
}
