package envelope

import (
	"bytes"
	"net/url"
	"testing"
)

func TestHeadersStandOnceAndInOrder(t *testing.T) {
	t.Parallel()
	order := []string{
		HeaderContentType, HeaderSpecVersion, HeaderID, HeaderSource, HeaderType, HeaderSubject, HeaderTime,
		HeaderPartitionKey, HeaderNamespace, HeaderTenant, HeaderStateVersion, HeaderEnvelope,
	}
	event := testEvent(t)
	checkOrder(t, event.Record(), order)
	event.Scope = NonTenant()
	checkOrder(t, event.Record(), append(order[:9:9], order[10:]...))
}

func checkOrder(t *testing.T, r Record, order []string) {
	t.Helper()
	if len(r.Headers) != len(order) {
		t.Fatalf("%d headers, want %d", len(r.Headers), len(order))
	}
	for i, name := range order {
		if r.Headers[i].Key != name {
			t.Errorf("header %d is %s, want %s", i, r.Headers[i].Key, name)
		}
	}
}

func TestSourceIsEscaped(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ tenant, segment string }{
		"unreserved": {"AZaz09-._~", "AZaz09-._~"},
		"space":      {" ", "%20"},
		"reserved":   {":/?#[]@!$&'()*+,;=", "%3A%2F%3F%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D"},
		"escaped":    {"%2F", "%252F"},
		"others":     {"\"<>\\^`{|}", "%22%3C%3E%5C%5E%60%7B%7C%7D"},
		"not ASCII":  {"é👩", "%C3%A9%F0%9F%91%A9"},
	} {
		event := testEvent(t)
		event.Namespace, event.Scope = test.tenant, tenant(t, test.tenant)
		want := "/namespaces/" + test.segment + "/tenants/" + test.segment
		if got := event.Source(); got != want {
			t.Errorf("%s: source %s, want %s", name, got, want)
		}
		parsed, err := url.Parse(event.Source())
		if err != nil || parsed.Path != "/namespaces/"+test.tenant+"/tenants/"+test.tenant {
			t.Errorf("%s: as a URL it has the path %q, %v", name, parsed.Path, err)
		}
	}
}

// Clients may append to what they are given.
func TestPartsOfARecordShareNoRoom(t *testing.T) {
	t.Parallel()
	event := testEvent(t)
	want := formatGolden(event.Record())
	record := event.Record()
	_ = append(record.Key, "!!!!"...)
	for _, h := range record.Headers {
		_ = append(h.Value, "!!!!"...)
	}
	if got := formatGolden(record); !bytes.Equal(got, want) {
		t.Errorf("record is\n%s\nafter appending to its parts, was\n%s", got, want)
	}
}

func TestRecordAllocations(t *testing.T) {
	event := testEvent(t)
	// The operation id's text, the buffer and the headers.
	if got := testing.AllocsPerRun(100, func() { event.Record() }); got > 3 {
		t.Errorf("Record makes %v allocations", got)
	}
}
