package envelope

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A changed golden file breaks consumers: add files for new cases, and leave those of released versions alone.
var update = flag.Bool("update", false, "write the golden files of cases that have changed")

// goldenEvents are the events of the golden records, by the names of their files.
func goldenEvents(t *testing.T) map[string]Event {
	plain := testEvent(t)
	event := func(change func(*Event)) Event {
		e := plain
		change(&e)
		return e
	}
	ofTenant := func(id string) Event { return event(func(e *Event) { e.Scope = tenant(t, id) }) }
	at := func(when time.Time) Event { return event(func(e *Event) { e.Time = when }) }
	const fields = `, "event": "claimed", "operation_id": "0190f3a2-7c4e-7d11-9b5a-3e6f8a2b4c1d"}`
	holding := func(version int64, data string) Event {
		return event(func(e *Event) { e.StateVersion, e.Data = version, []byte(data) })
	}
	return map[string]Event{
		"tenant":     plain,
		"non-tenant": event(func(e *Event) { e.Scope = NonTenant() }),
		"namespace":  event(func(e *Event) { e.Namespace = "my app/eu:1 %2F \"é\" 東京" }),
		"type":       event(func(e *Event) { e.Type = "audit: \"Größe\" 🚀" }),

		"tenant-space":      ofTenant(" two  words "),
		"tenant-colon":      ofTenant("eu:west:7"),
		"tenant-slash":      ofTenant("/a/b/../c"),
		"tenant-percent":    ofTenant("100%25"),
		"tenant-quotes":     ofTenant(`"a" 'b' \c`),
		"tenant-emoji":      ofTenant("👩‍💻"),
		"tenant-cjk":        ofTenant("株式会社テナント"),
		"tenant-unreserved": ofTenant("AZaz09-._~"),
		"tenant-longest":    ofTenant(strings.Repeat("ü", MaxTenantBytes/2)),

		"payload-numbers": holding(9007199254740993, `{"state_version": 9007199254740993, "big": 123456789012345678901234567890, "one": 1.0, "small": 1e-7`+fields),
		"payload-text":    holding(1, `{"state_version": 1, "text": "a < b > c & d \u2028 `+"\u2028 \x7f é 🚀"+` \\ \" \/"`+fields),
		"payload-spaces":  holding(1, " {\t\"state_version\"\n:\r1 "+fields+"\n"),
		"payload-largest": holding(9223372036854775807, `{"state_version": 9223372036854775807`+fields),

		"time-whole":        at(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		"time-microseconds": at(time.Date(2026, 1, 1, 0, 0, 0, 1000, time.UTC)),
		"time-first":        at(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)),
		"time-last":         at(time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC)),
	}
}

func TestGoldenRecords(t *testing.T) {
	events := goldenEvents(t)
	for name, event := range events {
		t.Run(name, func(t *testing.T) {
			made, err := New(event.Namespace, event.Scope, event.OperationID, event.Type, event.Time, event.Data)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(made, event) {
				t.Fatalf("New = %+v, want %+v", made, event)
			}
			path := goldenPath(name)
			got := formatGolden(made.Record())
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("record is\n%s\nwant, from %s,\n%s", got, path, want)
			}
		})
	}
	files, err := filepath.Glob(goldenPath("*"))
	if err != nil || len(files) != len(events) {
		t.Errorf("%d golden files for %d events, %v: one has no case or no file: %q",
			len(files), len(events), err, slices.Sorted(maps.Keys(events)))
	}
}

// It does not run in parallel, since the files may be being written.
func TestGoldenRecordsStayReadable(t *testing.T) {
	for name, want := range goldenEvents(t) {
		content, err := os.ReadFile(goldenPath(name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(parseGolden(t, content))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: Parse = %+v, %v, want %+v", name, got, err, want)
		}
	}
}

func goldenPath(name string) string { return filepath.Join("testdata", "golden", name+".txt") }

// formatGolden writes each part of a record on a line of its own, as a Go string of ASCII.
func formatGolden(r Record) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "key %+q\nvalue %+q\n", r.Key, r.Value)
	for _, h := range r.Headers {
		fmt.Fprintf(&b, "%+q %+q\n", h.Key, h.Value)
	}
	return b.Bytes()
}

func parseGolden(t *testing.T, content []byte) (r Record) {
	t.Helper()
	for line := range strings.Lines(string(content)) {
		name, quoted, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		value, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		switch name {
		case "key":
			r.Key = []byte(value)
		case "value":
			r.Value = []byte(value)
		default:
			header, err := strconv.Unquote(name)
			if err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			r.Headers = append(r.Headers, Header{header, []byte(value)})
		}
	}
	return r
}
