package envelope

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// ErrVersion is what [Parse] errs with for a record of another envelope version, or
// without one. A consumer had better stop there than pass it over: a newer version may
// say the same in another way.
var ErrVersion = errors.New("header " + HeaderEnvelope + " is not " + version + ": not an envelope that this version reads")

// Parse reads an event's wire form back. It keeps the record's bytes without copying
// them. It errs unless every header of the envelope is there exactly once and all
// agree with each other and with key and value; a text from the record stands in no
// error. Headers outside the envelope's own names (content-type and ce_...) are
// passed over: mirrors and tracing tools add some, and so does a dead letter.
func Parse(r Record) (Event, error) {
	headers, err := collect(r.Headers)
	if err != nil {
		return Event{}, err
	}
	e, err := read(headers, r.Value)
	if err != nil {
		return Event{}, err
	}
	// What was read is right exactly if writing it gives the same envelope again.
	again := e.Record()
	if !bytes.Equal(again.Key, r.Key) {
		return Event{}, errors.New("the record's key is not the operation id")
	}
	if len(again.Headers) != len(headers) {
		return Event{}, errors.New("a header stands there that the envelope does not have")
	}
	for _, want := range again.Headers {
		if got, ok := headers[want.Key]; !ok || got != string(want.Value) {
			return Event{}, fmt.Errorf("header %s is missing or does not agree with the others", want.Key)
		}
	}
	return e, nil
}

// collect gives the envelope's own headers by name.
func collect(headers []Header) (map[string]string, error) {
	own := make(map[string]string, len(headers))
	for _, h := range headers {
		name := strings.ToLower(h.Key)
		if name != HeaderContentType && !strings.HasPrefix(name, "ce_") {
			continue
		}
		if _, twice := own[name]; twice || name != h.Key {
			return nil, errors.New("a header of the envelope stands there twice or in another case")
		}
		own[name] = string(h.Value)
	}
	if own[HeaderEnvelope] != version {
		return nil, ErrVersion
	}
	return own, nil
}

// read takes from the headers what an event consists of.
func read(headers map[string]string, value []byte) (Event, error) {
	operation, err := uuid.Parse(headers[HeaderSubject])
	if err != nil {
		return Event{}, fmt.Errorf("header %s is no operation id", HeaderSubject)
	}
	created, ok := parseTime(headers[HeaderTime])
	if !ok {
		return Event{}, fmt.Errorf("header %s is no time of RFC 3339 in UTC with microseconds", HeaderTime)
	}
	scope := NonTenant()
	if tenant, ok := headers[HeaderTenant]; ok {
		if scope, err = Tenant(tenant); err != nil {
			return Event{}, fmt.Errorf("header %s is no tenant id", HeaderTenant)
		}
	}
	namespace := headers[HeaderNamespace]
	if CheckNamespace(namespace) != nil {
		return Event{}, fmt.Errorf("header %s is no namespace", HeaderNamespace)
	}
	return New(namespace, scope, operation, headers[HeaderType], created, value)
}
