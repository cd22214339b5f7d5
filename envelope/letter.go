package envelope

import (
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// Names of the headers that a dead letter has beside an event's.
const (
	HeaderError     = "relay_error"
	HeaderAttempts  = "relay_attempts"
	HeaderTopic     = "relay_topic"
	HeaderTruncated = "relay_truncated" // the size of a value that was left out, in bytes
)

// DeadLetter is a row that can't be delivered as it is, as it goes to the dead-letter
// topic. Namespace, Scope and OperationID are as trusted as an event's.
type DeadLetter struct {
	Namespace   string
	Scope       Scope
	OperationID uuid.UUID
	Type        string
	Created     time.Time
	Data        []byte // nil if it was too large to be read
	Bytes       int64  // size of the payload's text
	Attempts    int
	Reason      string // without payload
	Topic       string // where the event would have gone
}

// Record is the letter's wire form: the event's record with the letter's headers behind
// its own. A row that can't become an event has no more of the event's headers than it
// is good for, and "?" for a state version that can't be told. whole is false if the
// value is left out.
func (l *DeadLetter) Record(whole bool) Record {
	whole = whole && l.Data != nil
	r := l.record()
	text := func(name, value string) { r.Headers = append(r.Headers, Header{name, []byte(value)}) }
	text(HeaderError, l.Reason)
	text(HeaderAttempts, strconv.Itoa(l.Attempts))
	text(HeaderTopic, l.Topic)
	if !whole {
		r.Value = nil
		text(HeaderTruncated, strconv.FormatInt(l.Bytes, 10))
	}
	return r
}

// record is the event's record, or what can be told of it.
func (l *DeadLetter) record() Record {
	event, err := New(l.Namespace, l.Scope, l.OperationID, l.Type, l.Created, l.Data)
	if err == nil {
		return event.Record()
	}
	version, unversioned := readPayload(l.OperationID, l.Data)
	r := (&Event{
		Namespace: l.Namespace, Scope: l.Scope, OperationID: l.OperationID, StateVersion: version,
		Type: l.Type, Time: l.Created, Data: l.Data,
	}).Record()
	year := l.Created.UTC().Year()
	r.Headers = slices.DeleteFunc(r.Headers, func(h Header) bool {
		switch h.Key {
		case HeaderStateVersion:
			return unversioned != nil
		case HeaderType:
			return l.Type == ""
		case HeaderTime:
			return year < 1 || year > 9999
		}
		return false
	})
	if unversioned != nil {
		id := slices.IndexFunc(r.Headers, func(h Header) bool { return h.Key == HeaderID })
		r.Headers[id].Value = []byte(l.OperationID.String() + ":?")
	}
	return r
}
