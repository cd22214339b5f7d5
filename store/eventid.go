package store

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"outboxrelay/envelope"
)

// EventID names one event the way an operator does: by its row's id, or by its ce_id,
// the operation id and the state version. Make one with [ParseEventID].
type EventID struct {
	row       int64 // 0: by the other two
	operation uuid.UUID
	version   int64
}

// ParseEventID reads a row's id, such as 4711, or a ce_id, such as
// 6f1c0d3e-8a55-4d0f-9a67-0d5b6f1a2c3d:3.
func ParseEventID(text string) (EventID, error) {
	operation, version, ok := strings.Cut(text, ":")
	if !ok {
		if id, ok := positive(text); ok {
			return EventID{row: id}, nil
		}
	} else if op, err := uuid.Parse(operation); err == nil && len(operation) == len(op.String()) {
		if n, ok := positive(version); ok {
			return EventID{operation: op, version: n}, nil
		}
	}
	return EventID{}, fmt.Errorf("%.100q is no event: give its row's id, or its ce_id: <operation id>:<state version>", text)
}

// String is the id as [ParseEventID] reads it.
func (id EventID) String() string {
	if id.row > 0 {
		return strconv.FormatInt(id.row, 10)
	}
	return (&envelope.Event{OperationID: id.operation, StateVersion: id.version}).ID()
}

// ByRow is true for a row's id.
func (id EventID) ByRow() bool { return id.row > 0 }

// positive reads the plain decimal form of 1 to 2^63-1; of anything else it makes 0.
func positive(text string) (n int64, ok bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != text {
		return 0, false
	}
	return n, true
}
