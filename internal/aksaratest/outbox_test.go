package aksaratest_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/aksaratest"
	"outboxrelay/internal/pgtest"
)

// operationKey names an operation as the outbox does.
type operationKey struct{ scope, id string }

// readOutbox returns what the outbox holds for each operation, by state version, and checks that these go 1, 2, 3.
func readOutbox(t *testing.T, db *pgtest.DB) map[operationKey][]aksaratest.Transition {
	t.Helper()
	rows, err := db.Conn(t).Query(t.Context(), `
		SELECT o.tenant_scope, o.payload
		FROM aksara_operation_outbox AS o JOIN aksara_operations AS p ON p.id = o.operation_id
		WHERE p.application_namespace = $1
		ORDER BY o.operation_id, (o.payload ->> 'state_version')::bigint`, namespace)
	if err != nil {
		t.Fatalf("read the outbox: %v", err)
	}
	stored := make(map[operationKey][]aksaratest.Transition)
	var scope string
	var text []byte
	_, err = pgx.ForEachRow(rows, []any{&scope, &text}, func() error {
		var payload struct {
			ID      string  `json:"operation_id"`
			Version int     `json:"state_version"`
			Event   string  `json:"event"`
			From    *string `json:"from_state"`
			To      string  `json:"to_state"`
			Reason  *string `json:"reason_code"`
		}
		if err := json.Unmarshal(text, &payload); err != nil {
			return err
		}
		key := operationKey{scope, payload.ID}
		stored[key] = append(stored[key], aksaratest.Transition{
			Event: payload.Event, From: payload.From, To: payload.To, Reason: payload.Reason,
		})
		if payload.Version != len(stored[key]) {
			t.Errorf("operation %s has state version %d in place %d", payload.ID, payload.Version, len(stored[key]))
		}
		return nil
	})
	if err != nil {
		t.Fatalf("read the outbox: %v", err)
	}
	return stored
}

// eventsOf returns the sorted names of a scope's events, each once.
func eventsOf(stored map[operationKey][]aksaratest.Transition, scope string) []string {
	var events []string
	for key, transitions := range stored {
		if key.scope != scope {
			continue
		}
		for _, transition := range transitions {
			events = append(events, transition.Event)
		}
	}
	slices.Sort(events)
	return slices.Compact(events)
}

func describe(transitions []aksaratest.Transition) string {
	text, err := json.Marshal(transitions)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
