package envelope

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestParseTakes(t *testing.T) {
	t.Parallel()
	event := testEvent(t)
	record := event.Record()
	deadLetter := plus(plus(plus(record, "relay_error", secret), "relay_attempts", "3"), "relay_topic", "a")
	reversed := record
	reversed.Headers = slices.Clone(record.Headers)
	slices.Reverse(reversed.Headers)
	for name, record := range map[string]Record{
		"as written":       record,
		"other order":      reversed,
		"dead letter":      deadLetter,
		"tracing":          plus(record, "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
		"nameless header":  plus(record, "", ""),
		"foreign twice":    plus(plus(record, "mirror", "a"), "mirror", "b"),
		"prefix of a name": plus(plus(record, "ce", ""), "ce-id", ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(record)
			if err != nil || !reflect.DeepEqual(got, event) {
				t.Errorf("Parse = %+v, %v, want %+v", got, err, event)
			}
		})
	}
}

func TestParseKeepsTheBytes(t *testing.T) {
	t.Parallel()
	event := testEvent(t)
	record := event.Record()
	got, err := Parse(record)
	if err != nil {
		t.Fatal(err)
	}
	if &got.Data[0] != &record.Value[0] {
		t.Error("Parse has copied the value")
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	event := testEvent(t)
	record := event.Record()
	cases := map[string]Record{
		"nothing":                {},
		"no headers":             {Key: record.Key, Value: record.Value},
		"key of another":         func() Record { r := record; r.Key = []byte("0190f3a2-7c4e-7d11-9b5a-3e6f8a2b4c1e"); return r }(),
		"upper-case key":         func() Record { r := record; r.Key = []byte(strings.ToUpper(string(r.Key))); return r }(),
		"no key":                 func() Record { r := record; r.Key = nil; return r }(),
		"no value":               func() Record { r := record; r.Value = nil; return r }(),
		"value of other version": func() Record { r := record; r.Value = payload(4); return r }(),
		"value of another": func() Record {
			r := record
			r.Value = []byte(`{"state_version": 3, "operation_id": "` + secret + `"}`)
			return r
		}(),

		"unknown header":            plus(record, "ce_"+secret, secret),
		"upper-case unknown header": plus(record, "CE_x", secret),
		"non-tenant with tenant":    with(record, HeaderSource, "/namespaces/billing"),
		"tenant without source":     without(record, HeaderTenant),
	}
	for _, h := range record.Headers {
		upper := record
		upper.Headers = slices.Clone(record.Headers)
		for i := range upper.Headers {
			if upper.Headers[i].Key == h.Key {
				upper.Headers[i].Key = strings.ToUpper(h.Key[:1]) + h.Key[1:]
			}
		}
		cases["without "+h.Key] = without(record, h.Key)
		cases["twice "+h.Key] = plus(record, h.Key, string(h.Value))
		cases["twice in other case "+h.Key] = plus(record, strings.ToUpper(h.Key), string(h.Value))
		cases["other case "+h.Key] = upper
		cases["empty "+h.Key] = with(record, h.Key, "")
		cases["text in "+h.Key] = with(record, h.Key, secret)
		if h.Key != HeaderType && h.Key != HeaderTenant && h.Key != HeaderNamespace {
			cases["blank behind "+h.Key] = with(record, h.Key, string(h.Value)+" ")
		}
	}
	delete(cases, "text in "+HeaderType) // any text is a type
	for name, value := range map[string]string{
		HeaderContentType:  "application/json; charset=utf-8",
		HeaderSpecVersion:  "1.0.2",
		HeaderID:           "0190f3a2-7c4e-7d11-9b5a-3e6f8a2b4c1d:4",
		HeaderSource:       "/namespaces/billing/tenants/customer%2D7",
		HeaderSubject:      "{0190f3a2-7c4e-7d11-9b5a-3e6f8a2b4c1d}",
		HeaderPartitionKey: "0190f3a2-7c4e-7d11-9b5a-3e6f8a2b4c1e",
		HeaderNamespace:    "__aksara_global__",
		HeaderTenant:       "__aksara_global__",
		HeaderStateVersion: "03",
		HeaderEnvelope:     "2",
	} {
		cases["wrong "+name] = with(record, name, value)
	}
	for name, value := range map[string]string{
		"offset": "2026-02-28T23:59:58.123456+00:00", "milliseconds": "2026-02-28T23:59:58.123Z", "comma": "2026-02-28T23:59:58,123456Z",
		"lower case": "2026-02-28t23:59:58.123456z", "day": "2026-02-30T23:59:58.123456Z", "leap second": "2026-02-28T23:59:60.000000Z",
		"year 0": "0000-02-28T23:59:58.123456Z", "year 10000": "10000-02-28T23:59:58.123456Z", "nanoseconds": "2026-02-28T23:59:58.123456789Z",
	} {
		cases["time with "+name] = with(record, HeaderTime, value)
	}
	for name, record := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			event, err := Parse(record)
			if err == nil {
				t.Fatalf("Parse = %+v", event)
			}
			if !reflect.DeepEqual(event, Event{}) {
				t.Errorf("Parse = %+v together with an error", event)
			}
			for _, text := range []string{secret, "customer", "billing", testOperation.String()} {
				if strings.Contains(err.Error(), text) {
					t.Errorf("the error shows %q: %v", text, err)
				}
			}
		})
	}
}

func TestParseNamesTheVersionItDoesNotRead(t *testing.T) {
	t.Parallel()
	event := testEvent(t)
	_, err := Parse(with(event.Record(), HeaderEnvelope, "2"))
	if !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), HeaderEnvelope) {
		t.Errorf("Parse of a later version: %v, want ErrVersion with the header named", err)
	}
}
