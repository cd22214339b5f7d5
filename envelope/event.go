package envelope

import (
	"strconv"
	"time"

	"github.com/google/uuid"
)

// Event is one committed transition of one Operation. Namespace, scope and
// operation id are trusted: they come from configuration and the row's columns,
// never from Data. Make one with [New] or [Parse].
type Event struct {
	Namespace    string
	Scope        Scope
	OperationID  uuid.UUID
	StateVersion int64     // of the operation, from 1; the payload's
	Type         string    // the row's topic column
	Time         time.Time // created_at, UTC, microseconds
	Data         []byte    // the payload as Postgres gives its text; not to be changed
}

// Fault says why a row can't become an event. Sending it again can't help. Its text
// never holds payload.
type Fault struct{ Reason string }

func (f *Fault) Error() string { return f.Reason }

// New makes the event of one outbox row. It keeps data without copying it. The
// error is always a [*Fault].
func New(namespace string, scope Scope, operation uuid.UUID, typ string, created time.Time, data []byte) (Event, error) {
	version, err := readPayload(operation, data)
	if err != nil {
		return Event{}, err
	}
	if typ == "" {
		return Event{}, &Fault{"the topic column is empty, and it is the event's type"}
	}
	created = created.UTC()
	if y := created.Year(); y < 1 || y > 9999 {
		return Event{}, &Fault{"created_at is outside the years 1 to 9999, which RFC 3339 can't express"}
	}
	return Event{
		Namespace: namespace, Scope: scope, OperationID: operation, StateVersion: version,
		Type: typ, Time: created.Truncate(time.Microsecond), Data: data,
	}, nil
}

// ID is the deduplication key: the operation id and the state version. Together with
// [Event.Source] it is unique for an event, across services and tenants.
func (e *Event) ID() string {
	return e.OperationID.String() + ":" + strconv.FormatInt(e.StateVersion, 10)
}

// Source names the producer: the namespace, and the tenant if there is one, as a URI
// path in which all but RFC 3986 unreserved characters are percent-encoded.
func (e *Event) Source() string {
	return string(appendSource(nil, e.Namespace, e.Scope))
}
