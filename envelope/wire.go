package envelope

import (
	"strconv"
	"time"
)

// Names of the record headers. Sources: CloudEvents 1.0.2 section 3, its Kafka
// protocol binding section 3.2, and its partitioning extension.
const (
	HeaderContentType  = "content-type"
	HeaderSpecVersion  = "ce_specversion"
	HeaderID           = "ce_id"
	HeaderSource       = "ce_source"
	HeaderType         = "ce_type"
	HeaderSubject      = "ce_subject"
	HeaderTime         = "ce_time"
	HeaderPartitionKey = "ce_partitionkey"
	HeaderNamespace    = "ce_namespace"
	HeaderTenant       = "ce_tenant" // absent for the non-tenant scope
	HeaderStateVersion = "ce_stateversion"
	HeaderEnvelope     = "ce_envelope"
)

const (
	contentType = "application/json"
	specVersion = "1.0"
	version     = "1" // of the envelope: changes only if the meaning of a header does

	// timeFormat is RFC 3339 with always six digits, so that a row's time has one form.
	timeFormat = "2006-01-02T15:04:05.000000Z"
)

// Record is an event as Kafka carries it. Key and header values are bytes without
// further encoding.
type Record struct {
	Key     []byte
	Value   []byte
	Headers []Header
}

// Header is one record header.
type Header struct {
	Key   string
	Value []byte
}

// Record is the event's wire form: each header once, always in the same order. The
// value is the event's Data, not a copy of it.
func (e *Event) Record() Record {
	// One buffer holds all values: per event two allocations instead of a dozen.
	buf := make([]byte, 0, 512)
	headers := make([]Header, 0, 12)
	add := func(name string, from int) { headers = append(headers, Header{name, buf[from:len(buf):len(buf)]}) }
	text := func(name, value string) {
		from := len(buf)
		buf = append(buf, value...)
		add(name, from)
	}

	operation := e.OperationID.String()
	text(HeaderContentType, contentType)
	text(HeaderSpecVersion, specVersion)
	from := len(buf)
	buf = append(buf, operation...)
	key := buf[from:len(buf):len(buf)]
	buf = append(buf, ':')
	digits := len(buf)
	buf = strconv.AppendInt(buf, e.StateVersion, 10)
	stateVersion := buf[digits:len(buf):len(buf)]
	add(HeaderID, from)
	from = len(buf)
	buf = appendSource(buf, e.Namespace, e.Scope)
	add(HeaderSource, from)
	text(HeaderType, e.Type)
	headers = append(headers, Header{HeaderSubject, key})
	from = len(buf)
	buf = e.Time.UTC().AppendFormat(buf, timeFormat)
	add(HeaderTime, from)
	headers = append(headers, Header{HeaderPartitionKey, key})
	text(HeaderNamespace, e.Namespace)
	if tenant, ok := e.Scope.Tenant(); ok {
		text(HeaderTenant, tenant)
	}
	headers = append(headers, Header{HeaderStateVersion, stateVersion})
	text(HeaderEnvelope, version)
	return Record{Key: key, Value: e.Data, Headers: headers}
}

// appendSource panics for the zero scope, which would pass for the non-tenant one.
func appendSource(buf []byte, namespace string, scope Scope) []byte {
	if !scope.Valid() {
		panic("envelope: an invalid scope was used")
	}
	buf = append(buf, "/namespaces/"...)
	buf = appendEscaped(buf, namespace)
	if tenant, ok := scope.Tenant(); ok {
		buf = append(buf, "/tenants/"...)
		buf = appendEscaped(buf, tenant)
	}
	return buf
}

// appendEscaped percent-encodes every byte but RFC 3986 section 2.3 unreserved
// characters. net/url's escapers leave more than those alone.
func appendEscaped(buf []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			c == '-' || c == '.' || c == '_' || c == '~' {
			buf = append(buf, c)
		} else {
			buf = append(buf, '%', hex[c>>4], hex[c&15])
		}
	}
	return buf
}

// parseTime reads exactly the form that timeFormat writes.
func parseTime(s string) (time.Time, bool) {
	t, err := time.Parse(timeFormat, s)
	return t, err == nil && t.Format(timeFormat) == s && t.Year() >= 1
}
