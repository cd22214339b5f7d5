package schemas_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/schemas"
)

// AsyncAPI's own schema takes the document, and notices what is wrong with a worse one.
func TestAsyncAPIDocumentIsOne(t *testing.T) {
	t.Parallel()
	schema := compile(t, decode(t, officialSchema(t)), "")
	document := asyncAPI(t)
	if err := schema.Validate(document); err != nil {
		t.Fatal(err)
	}
	delete(document, "info")
	at(t, document, "operations", "consumeTransitions").(map[string]any)["action"] = "read"
	if err := schema.Validate(document); err == nil || !strings.Contains(err.Error(), "info") || !strings.Contains(err.Error(), "action") {
		t.Errorf("without info and with a wrong action: %v", err)
	}
}

// Each reference of the document leads somewhere, and the payload's to the schema.
func TestAsyncAPIReferences(t *testing.T) {
	t.Parallel()
	document := asyncAPI(t)
	for _, match := range regexp.MustCompile(`\$ref: "?([^"\n]+)`).FindAllStringSubmatch(string(schemas.AsyncAPI), -1) {
		if path, inside := strings.CutPrefix(match[1], "#/"); inside {
			at(t, document, strings.Split(path, "/")...)
		} else if text, err := os.ReadFile(match[1]); err != nil || string(text) != string(schemas.Transition) {
			t.Errorf("%s is not the schema: %v", match[1], err)
		}
	}
}

// event is one with values that need encoding.
func event(t *testing.T, scope envelope.Scope) envelope.Event {
	t.Helper()
	e, err := envelope.New("my app/ü", scope, uuid.New(), "aksara.operation.transition", time.Now(), []byte(`{"state_version": 9223372036854775807}`))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func tenant(t *testing.T) envelope.Scope {
	t.Helper()
	scope, err := envelope.Tenant("eu/west ü 7")
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

// names are those of a record's headers in their order, and values the headers as AsyncAPI sees them.
func headers(r envelope.Record) (names []string, values map[string]any) {
	values = map[string]any{}
	for _, h := range r.Headers {
		names = append(names, h.Key)
		values[h.Key] = string(h.Value)
	}
	return names, values
}

// The headers that the document lists are those that package envelope writes, each required if it is always there.
func TestAsyncAPIHeadersAreTheEnvelopes(t *testing.T) {
	t.Parallel()
	document := asyncAPI(t)
	schema := compile(t, document, "#/components/schemas/envelope")
	ofTenant, ofNone := event(t, tenant(t)), event(t, envelope.NonTenant())
	all, values := headers(ofTenant.Record())
	always, valuesOfNone := headers(ofNone.Record())
	for _, v := range []map[string]any{values, valuesOfNone} {
		if err := schema.Validate(v); err != nil {
			t.Error(err)
		}
	}
	sameNames(t, "headers", keys(at(t, document, "components", "schemas", "headers", "properties")), all)
	sameNames(t, "required headers", texts(at(t, document, "components", "schemas", "envelope", "required")), always)

	for name, wrong := range map[string]string{
		"content-type": "text/plain", "ce_specversion": "0.3", "ce_id": ofTenant.OperationID.String() + ":?", "ce_source": "/namespaces/my app", "ce_type": "",
		"ce_subject": "1", "ce_time": "2026-01-01T00:00:00Z", "ce_partitionkey": "", "ce_namespace": "", "ce_tenant": "", "ce_stateversion": "01", "ce_envelope": "2",
	} {
		_, bad := headers(ofTenant.Record())
		bad[name] = wrong
		if schema.Validate(bad) == nil {
			t.Errorf("%s: %q is taken", name, wrong)
		}
	}
}

func TestAsyncAPILettersAreTheEnvelopes(t *testing.T) {
	t.Parallel()
	document := asyncAPI(t)
	schema := compile(t, document, "#/components/schemas/letter")
	letter := envelope.DeadLetter{
		Namespace: "orders", Scope: tenant(t), OperationID: uuid.New(), Type: "aksara.operation.transition", Created: time.Now(),
		Data: []byte(`{"state_version": 1}`), Bytes: 20, Attempts: 3, Reason: "too large", Topic: "transitions",
	}
	unreadable := letter
	unreadable.Data, unreadable.Type, unreadable.Created = []byte("[]"), "", time.Time{}.AddDate(-5, 0, 0)
	var ever []string
	always := func() []string { n, _ := headers(letter.Record(true)); return n }()
	for _, r := range []envelope.Record{letter.Record(true), letter.Record(false), unreadable.Record(true)} {
		names, values := headers(r)
		if err := schema.Validate(values); err != nil {
			t.Error(err)
		}
		ever = append(ever, names...)
		always = slices.DeleteFunc(always, func(name string) bool { return !slices.Contains(names, name) })
	}
	nonTenant := letter
	nonTenant.Scope = envelope.NonTenant()
	names, _ := headers(nonTenant.Record(true))
	always = slices.DeleteFunc(always, func(name string) bool { return !slices.Contains(names, name) })

	listed := append(keys(at(t, document, "components", "schemas", "headers", "properties")), keys(at(t, document, "components", "schemas", "letter", "properties"))...)
	sameNames(t, "a letter's headers", listed, ever)
	sameNames(t, "a letter's required headers", texts(at(t, document, "components", "schemas", "letter", "required")), always)
	_, values := headers(letter.Record(true))
	delete(values, envelope.HeaderError)
	if schema.Validate(values) == nil {
		t.Error("a letter without a reason is taken")
	}
}

// The page for people lists the same headers, in the order in which they are sent.
func TestConsumersPageListsTheHeaders(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/consumers.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, match := range regexp.MustCompile("(?m)^\\| `((?:ce_|content-|relay_)[a-z]+|content-type)` \\|").FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, match[1])
	}
	e := event(t, tenant(t))
	want, _ := headers(e.Record())
	want = append(want, envelope.HeaderError, envelope.HeaderAttempts, envelope.HeaderTopic, envelope.HeaderTruncated)
	if !slices.Equal(listed, want) {
		t.Errorf("docs/consumers.md lists\n%q\nand records have\n%q", listed, want)
	}
}

func keys(object any) (names []string) {
	for name := range object.(map[string]any) {
		names = append(names, name)
	}
	return names
}

func texts(list any) (all []string) {
	for _, text := range list.([]any) {
		all = append(all, text.(string))
	}
	return all
}

func sameNames(t *testing.T, what string, got, want []string) {
	t.Helper()
	unique := func(names []string) []string {
		return slices.Compact(slices.Sorted(slices.Values(names)))
	}
	if got, want := unique(got), unique(want); !slices.Equal(got, want) {
		t.Errorf("%s: the document has\n%q\nand the envelope\n%q", what, got, want)
	}
}
