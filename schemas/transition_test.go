package schemas_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/aksaratest"
	"outboxrelay/internal/pgtest"
	"outboxrelay/schemas"
)

// What the real Aksara writes, of every kind of operation and with reasons of an application's own, fits the schema, and
// the schema lists all that is in it.
func TestWhatAksaraWritesFitsTheSchema(t *testing.T) {
	t.Parallel()
	document := decode(t, schemas.Transition)
	schema := compile(t, document, "")
	listed := slices.Sorted(maps.Keys(at(t, document, "properties").(map[string]any)))

	db := pgtest.Database(t, aksaratest.Setup(t))
	aksaratest.Generate(t, db.URL, aksaratest.GenerateOptions{
		Namespace: "shop", Scopes: []string{"tenant a", aksaratest.NonTenant}, Counts: aksaratest.EachKind(1),
	})
	aksaratest.Generate(t, db.URL, aksaratest.GenerateOptions{
		Namespace: "shop", Scopes: []string{"tenant a"}, Counts: map[aksaratest.Kind]int{aksaratest.Failure: 3},
		FailureCodes: []string{"", strings.Repeat("ü", 100), "räson \"😀\"\n"},
	})
	rows, err := db.Conn(t).Query(t.Context(), "select payload::text from aksara_operation_outbox")
	if err != nil {
		t.Fatal(err)
	}
	payloads, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	events := map[string]bool{}
	for _, payload := range payloads {
		value := decode(t, []byte(payload))
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", payload, err)
		}
		if got := slices.Sorted(maps.Keys(value.(map[string]any))); !slices.Equal(got, listed) {
			t.Errorf("a payload has fields %q, the schema lists %q", got, listed)
		}
		events[at(t, value, "event").(string)] = true
	}
	// All events that the schema's description knows, and no others.
	description := at(t, document, "properties", "event", "description").(string)
	_, known, _ := strings.Cut(description, "Known: ")
	known, _, _ = strings.Cut(known, ".")
	if got, want := slices.Sorted(maps.Keys(events)), slices.Sorted(slices.Values(strings.Split(known, ", "))); !slices.Equal(got, want) {
		t.Errorf("Aksara wrote the events %q, the schema knows %q", got, want)
	}
}

func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	const good = `{"event": "admitted", "to_state": "ready", "attempt_id": null, "from_state": null, "reason_code": null,
		"operation_id": "0190f3a2-7c4e-7d11-9b5a-3e6f8a2b4c1d", "state_version": 9223372036854775807}`
	schema := compile(t, decode(t, schemas.Transition), "")
	for _, fine := range []string{good, strings.Replace(good, `"event"`, `"new_field": [1], "event"`, 1)} {
		if err := schema.Validate(decode(t, []byte(fine))); err != nil {
			t.Fatalf("%s: %v", fine, err)
		}
	}
	for name, change := range map[string][2]string{
		"missing field":      {`"attempt_id": null, `, ""},
		"version 0":          {"9223372036854775807", "0"},
		"version too great":  {"9223372036854775807", "9223372036854775808"},
		"version as text":    {"9223372036854775807", `"1"`},
		"broken version":     {"9223372036854775807", "1.5"},
		"upper-case id":      {"0190f3a2", "0190F3A2"},
		"id with more":       {"4c1d", "4c1d0"},
		"no state":           {`"ready"`, "null"},
		"empty event":        {`"admitted"`, `""`},
		"long reason":        {`"reason_code": null`, `"reason_code": "` + strings.Repeat("ü", 101) + `"`},
		"attempt of no UUID": {`"attempt_id": null`, `"attempt_id": "1"`},
		"another form":       {good, "[]"},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Fatalf("%s: the change changes nothing", name)
		}
		if err := schema.Validate(decode(t, []byte(bad))); err == nil {
			t.Errorf("%s: %s is taken", name, bad)
		}
	}
}
