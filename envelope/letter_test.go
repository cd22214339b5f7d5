package envelope

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

func letter(t *testing.T) DeadLetter {
	t.Helper()
	scope, err := Tenant("acme")
	if err != nil {
		t.Fatal(err)
	}
	data := `{"operation_id": "6f1c0d3e-8a55-4d0f-9a67-0d5b6f1a2c3d", "state_version": 7}`
	return DeadLetter{
		Namespace: "shop", Scope: scope, OperationID: uuid.MustParse("6f1c0d3e-8a55-4d0f-9a67-0d5b6f1a2c3d"), Type: "t",
		Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Data: []byte(data), Bytes: int64(len(data)), Attempts: 3, Reason: "bad", Topic: "events",
	}
}

func headersOf(r Record) map[string]string {
	all := map[string]string{}
	for _, h := range r.Headers {
		all[h.Key] = string(h.Value)
	}
	return all
}

// What reads events reads a dead letter too, if the row could be an event at all.
func TestDeadLetterOfAnEvent(t *testing.T) {
	t.Parallel()
	l := letter(t)
	r := l.Record(true)
	event, err := Parse(r)
	if err != nil || event.StateVersion != 7 || string(r.Value) != string(l.Data) {
		t.Errorf("read back: %+v, %v", event, err)
	}
	got := headersOf(r)
	if got[HeaderError] != "bad" || got[HeaderAttempts] != "3" || got[HeaderTopic] != "events" || len(r.Headers) != 15 {
		t.Errorf("headers %q", got)
	}
	short := l.Record(false)
	if got := headersOf(short); short.Value != nil || got[HeaderTruncated] != "76" || string(short.Key) != string(r.Key) {
		t.Errorf("without its value: key %q, value %q, headers %q", short.Key, short.Value, got)
	}
}

// A row that can't be an event still says whose it is, and makes nothing up.
func TestDeadLetterOfNoEvent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*DeadLetter)
		id     string
		absent string
	}{
		"no object":   {func(l *DeadLetter) { l.Data = []byte("[]") }, ":?", HeaderStateVersion},
		"other's":     {func(l *DeadLetter) { l.Data = []byte(`{"operation_id": "x", "state_version": 7}`) }, ":?", HeaderStateVersion},
		"not read":    {func(l *DeadLetter) { l.Data = nil }, ":?", HeaderStateVersion},
		"no type":     {func(l *DeadLetter) { l.Type = "" }, ":7", HeaderType},
		"no time":     {func(l *DeadLetter) { l.Created = time.Date(1_000_000, 1, 1, 0, 0, 0, 0, time.UTC) }, ":7", HeaderTime},
		"before time": {func(l *DeadLetter) { l.Created = time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC) }, ":7", HeaderTime},
		"nothing":     {func(l *DeadLetter) { l.Type, l.Data = "", []byte("1") }, ":?", HeaderType},
	} {
		l := letter(t)
		operation := l.OperationID.String()
		c.change(&l)
		r := l.Record(true)
		got := headersOf(r)
		if _, there := got[c.absent]; there || got[HeaderID] != operation+c.id {
			t.Errorf("%s: headers %q, want %s missing and an id that ends in %s", name, got, c.absent, c.id)
		}
		if string(r.Key) != operation || got[HeaderTenant] != "acme" || got[HeaderNamespace] != "shop" || got[HeaderError] != "bad" {
			t.Errorf("%s: key %q, headers %q", name, r.Key, got)
		}
		if _, truncated := got[HeaderTruncated]; truncated != (l.Data == nil) || string(r.Value) != string(l.Data) {
			t.Errorf("%s: value %q, headers %q", name, r.Value, got)
		}
	}
}
