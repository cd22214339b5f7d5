package envelope

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

var (
	testOperation = uuid.MustParse("0190f3a2-7c4e-7d11-9b5a-3e6f8a2b4c1d")
	testTime      = time.Date(2026, 2, 28, 23, 59, 58, 123456000, time.UTC)
)

const testType = "aksara.operation.transition"

// payload is one with a state version, of testOperation.
func payload(stateVersion int64) []byte {
	return fmt.Appendf(nil, `{"event": "claimed", "operation_id": %q, "state_version": %d}`, testOperation, stateVersion)
}

func tenant(t testing.TB, id string) Scope {
	t.Helper()
	scope, err := Tenant(id)
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

// testEvent is a plain event of a tenant.
func testEvent(t testing.TB) Event {
	t.Helper()
	event, err := New("billing", tenant(t, "customer-7"), testOperation, testType, testTime, payload(3))
	if err != nil {
		t.Fatal(err)
	}
	return event
}

// without is a record without one of its headers.
func without(r Record, name string) Record {
	r.Headers = slices.DeleteFunc(slices.Clone(r.Headers), func(h Header) bool { return h.Key == name })
	return r
}

// with is a record with one of its headers changed.
func with(r Record, name, value string) Record {
	r.Headers = slices.Clone(r.Headers)
	for i := range r.Headers {
		if r.Headers[i].Key == name {
			r.Headers[i].Value = []byte(value)
		}
	}
	return r
}

// plus is a record with one more header, at its end.
func plus(r Record, name, value string) Record {
	r.Headers = append(slices.Clone(r.Headers), Header{name, []byte(value)})
	return r
}
