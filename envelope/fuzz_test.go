package envelope

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// FuzzParse checks that Parse panics for no record, and that what it accepts is written in the same way again. Headers
// are given as lines of name and value with an equals sign between.
func FuzzParse(f *testing.F) {
	event := testEvent(f)
	nonTenant := event
	nonTenant.Scope = NonTenant()
	for _, record := range []Record{event.Record(), nonTenant.Record(), without(event.Record(), HeaderSource), plus(event.Record(), "a", "b")} {
		f.Add(record.Key, record.Value, joinHeaders(record.Headers))
	}
	f.Fuzz(func(t *testing.T, key, value []byte, headers string) {
		record := Record{Key: key, Value: value, Headers: splitHeaders(headers)}
		event, err := Parse(record)
		if err != nil {
			return
		}
		again := event.Record()
		if !bytes.Equal(again.Key, record.Key) || !bytes.Equal(again.Value, record.Value) {
			t.Errorf("key %q and value %q became %q and %q", record.Key, record.Value, again.Key, again.Value)
		}
		own := slices.DeleteFunc(record.Headers, func(h Header) bool {
			return h.Key != HeaderContentType && !strings.HasPrefix(strings.ToLower(h.Key), "ce_")
		})
		byName := func(a, b Header) int { return strings.Compare(a.Key, b.Key) }
		slices.SortFunc(own, byName)
		slices.SortFunc(again.Headers, byName)
		if joinHeaders(own) != joinHeaders(again.Headers) {
			t.Errorf("headers\n%s\nbecame\n%s", joinHeaders(own), joinHeaders(again.Headers))
		}
	})
}

func joinHeaders(headers []Header) string {
	var lines []string
	for _, h := range headers {
		lines = append(lines, h.Key+"="+string(h.Value))
	}
	return strings.Join(lines, "\n")
}

func splitHeaders(lines string) (headers []Header) {
	for line := range strings.SplitSeq(lines, "\n") {
		name, value, _ := strings.Cut(line, "=")
		headers = append(headers, Header{name, []byte(value)})
	}
	return headers
}

// FuzzNew checks that New panics for no payload, and sees the same in it as encoding/json.
func FuzzNew(f *testing.F) {
	for _, data := range []string{
		string(payload(1)), string(payload(1<<63 - 1)), `{"state_version": 1}`, `{"State_Version": 1}`, `{}`, `[]`, `null`, `"x"`, ` {"a" : {"b":[]} , "state_version":2 } `,
		`{"state\u005fversion": 3}`, `{"state_version": 1, "operation_id": "0190F3A2-7C4E-7D11-9B5A-3E6F8A2B4C1D"}`, `{"a\\": "\"", "state_version": 1.0}`, `{"state_version": 1, "state_version": 2}`,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		event, err := New("billing", NonTenant(), testOperation, testType, testTime, data)
		version, ok := decode(testOperation, data)
		if (err == nil) != ok || event.StateVersion != version {
			t.Fatalf("New gives version %d, %v; encoding/json gives version %d, %t", event.StateVersion, err, version, ok)
		}
		if err != nil {
			return
		}
		again, err := Parse(event.Record())
		if err != nil || again.StateVersion != version || !bytes.Equal(again.Data, data) {
			t.Errorf("Parse of its record = %+v, %v", again, err)
		}
	})
}

// decode reads a payload in the slow and obvious way.
func decode(operation uuid.UUID, data []byte) (version int64, ok bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil || fields == nil {
		return 0, false
	}
	version, ok = positiveInteger(string(fields["state_version"]))
	field := fields["operation_id"]
	if !ok || field == nil || string(field) == "null" {
		return version, ok
	}
	var named string
	if json.Unmarshal(field, &named) != nil || !strings.EqualFold(named, operation.String()) {
		return 0, false
	}
	return version, true
}
