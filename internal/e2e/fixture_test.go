package e2e_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/relayproc"
)

// fixture is what these tests run a relay on.
type fixture struct{ *relayproc.Fixture }

// newFixture makes a fixture on the given kind of database.
func newFixture(t *testing.T, setup pgtest.Setup) *fixture {
	t.Helper()
	return &fixture{relayproc.New(t, setup, kafkatest.Plain(t))}
}

// quickLease is for tests that wait for leases to end.
var quickLease = map[string]string{"RELAY_CLAIM_LEASE": "9s", "RELAY_KAFKA_DELIVERY_TIMEOUT": "1s"}

// row is an outbox row with all its columns as text.
type row map[string]string

// rows gives outbox rows in the order of their ids, all columns as text, null as "<null>".
func (f *fixture) rows(where string, args ...any) []row {
	f.T.Helper()
	result, err := f.Pool.Query(f.T.Context(), `select key, value from aksara_operation_outbox o,
		lateral jsonb_each_text(to_jsonb(o)) where `+where+` order by id, key`, args...)
	if err != nil {
		f.T.Fatal(err)
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
		f.T.Fatal(err)
	}
	return all
}
