package envelope

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// names draws what tenants and namespaces may be called, and often what makes sources look alike.
func names(limit int) *rapid.Generator[string] {
	alike := rapid.StringOfN(rapid.RuneFrom([]rune("/%2Ften.as: é")), 1, 12, -1)
	return rapid.OneOf(alike, rapid.StringN(1, limit/4, limit)).Filter(func(s string) bool { return checkName(s) == nil })
}

func scopes() *rapid.Generator[Scope] {
	return rapid.Custom(func(t *rapid.T) Scope {
		if rapid.Bool().Draw(t, "non-tenant") {
			return NonTenant()
		}
		scope, err := Tenant(names(MaxTenantBytes).Draw(t, "tenant"))
		if err != nil {
			t.Fatal(err)
		}
		return scope
	})
}

func events() *rapid.Generator[Event] {
	first := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	last := time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)
	return rapid.Custom(func(t *rapid.T) Event {
		operation := uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "operation"))
		version := rapid.Int64Min(1).Draw(t, "version")
		fields := map[string]any{"state_version": version}
		if rapid.Bool().Draw(t, "names its operation") {
			fields["operation_id"] = operation
		}
		if rapid.Bool().Draw(t, "has more") {
			fields["event"] = rapid.String().Draw(t, "event")
		}
		data, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		created := time.Unix(rapid.Int64Range(first.Unix(), last.Unix()).Draw(t, "seconds"), rapid.Int64Range(0, 999999999).Draw(t, "nanoseconds"))
		event, err := New(names(MaxNamespaceChars).Draw(t, "namespace"), scopes().Draw(t, "scope"), operation,
			rapid.StringN(1, 20, -1).Draw(t, "type"), created, data)
		if err != nil {
			t.Fatal(err)
		}
		return event
	})
}

func TestParseGivesBackWhatRecordWrote(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		event := events().Draw(t, "event")
		got, err := Parse(event.Record())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, event) {
			t.Fatalf("Parse = %+v, want %+v", got, event)
		}
	})
}

func TestSameRowGivesSameBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		event := events().Draw(t, "event")
		again, err := New(strings.Clone(event.Namespace), event.Scope, event.OperationID, event.Type,
			event.Time.In(time.FixedZone("elsewhere", 3600)), bytes.Clone(event.Data))
		if err != nil {
			t.Fatal(err)
		}
		if a, b := formatGolden(event.Record()), formatGolden(again.Record()); !bytes.Equal(a, b) {
			t.Fatalf("two deliveries of a row differ:\n%s\n%s", a, b)
		}
	})
}

func TestSourcesAreUnique(t *testing.T) {
	t.Parallel()
	type owner struct {
		namespace string
		scope     Scope
	}
	owners := rapid.Custom(func(t *rapid.T) owner {
		return owner{names(MaxNamespaceChars).Draw(t, "namespace"), scopes().Draw(t, "scope")}
	})
	rapid.Check(t, func(t *rapid.T) {
		sources := map[string]owner{}
		for _, o := range rapid.SliceOfN(owners, 2, 20).Draw(t, "owners") {
			event := Event{Namespace: o.namespace, Scope: o.scope}
			if other, taken := sources[event.Source()]; taken && other != o {
				t.Fatalf("%q is the source of %+v and of %+v", event.Source(), o, other)
			}
			sources[event.Source()] = o
		}
	})
}

// These pairs would share a source if a name were not escaped, or not completely.
func TestSourcesOfLookalikesDiffer(t *testing.T) {
	t.Parallel()
	source := func(namespace string, scope Scope) string {
		event := Event{Namespace: namespace, Scope: scope}
		return event.Source()
	}
	for _, pair := range [][2]string{
		{source("a/tenants/b", NonTenant()), source("a", tenant(t, "b"))},
		{source("a/tenants/b", tenant(t, "c")), source("a", tenant(t, "b/tenants/c"))},
		{source("a%2Fb", NonTenant()), source("a/b", NonTenant())},
		{source("a", tenant(t, "%20")), source("a", tenant(t, " "))},
		{source("a", tenant(t, "é")), source("a", tenant(t, "e\u0301"))},
		{source("a", tenant(t, "B")), source("a", tenant(t, "b"))},
	} {
		if pair[0] == pair[1] {
			t.Errorf("two owners share %s", pair[0])
		}
	}
}
