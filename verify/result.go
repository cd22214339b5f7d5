package verify

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"outboxrelay/envelope"
)

// Result is what a verification found.
type Result struct {
	// Rows and Records are how many were compared. Every record of the topics counts, whoever wrote it.
	Rows, Records int64
	// Passes is how often the topics were read.
	Passes int
	// Findings are those that there are, faults first, each kind once.
	Findings []Finding
}

// Finding is how often something of one kind was found.
type Finding struct {
	Kind     Kind
	Level    Level
	Meaning  string // what there are so many of, for people
	Count    int64
	Examples []Example // the first few, by place or row
}

// Example is one thing that was found. It never holds payload.
type Example struct {
	Operation uuid.UUID      // uuid.Nil if that isn't known
	Version   int64          // the state version; 0 if that isn't known
	Scope     envelope.Scope // invalid if that isn't known
	Row       int64          // the row's id; 0 if there is none
	Record    Place          // its Topic is "" if there is none
	Detail    string         // what more is known, or ""
}

// Place is where a record lies.
type Place struct {
	Topic     string
	Partition int32
	Offset    int64
}

// Event is the ce_id, or "" if that isn't known.
func (e Example) Event() string {
	if e.Operation == uuid.Nil || e.Version == 0 {
		return ""
	}
	event := envelope.Event{OperationID: e.Operation, StateVersion: e.Version}
	return event.ID()
}

// Find gives the finding of one kind; its count is 0 if there is none.
func (r *Result) Find(kind Kind) Finding {
	for _, f := range r.Findings {
		if f.Kind == kind {
			return f
		}
	}
	return Finding{Kind: kind}
}

// Level is that of the worst finding.
func (r *Result) Level() (worst Level) {
	for _, f := range r.Findings {
		worst = max(worst, f.Level)
	}
	return worst
}

// Err is nil if no fault was found; otherwise it names them, with an example each.
func (r *Result) Err() error {
	var faults []string
	for _, f := range r.Findings {
		if f.Level == Fault {
			faults = append(faults, fmt.Sprintf("%s: %d %s, such as %v", f.Kind, f.Count, f.Meaning, f.Examples[0]))
		}
	}
	if faults == nil {
		return nil
	}
	return errors.New(strings.Join(faults, "; "))
}

// String describes an example in one line.
func (e Example) String() string {
	var words []string
	if event := e.Event(); event != "" {
		words = append(words, "event "+event)
	} else if e.Operation != uuid.Nil {
		words = append(words, "operation "+e.Operation.String())
	}
	if e.Scope.Valid() {
		words = append(words, "of "+e.Scope.String())
	}
	if e.Row != 0 {
		words = append(words, fmt.Sprintf("in row %d", e.Row))
	}
	if r := e.Record; r.Topic != "" {
		words = append(words, fmt.Sprintf("at offset %d of %s/%d", r.Offset, r.Topic, r.Partition))
	}
	text := strings.Join(words, " ")
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// compare orders examples by place, row, operation and version.
func (e Example) compare(other Example) int {
	return cmp.Or(
		cmp.Compare(e.Record.Topic, other.Record.Topic),
		cmp.Compare(e.Record.Partition, other.Record.Partition),
		cmp.Compare(e.Record.Offset, other.Record.Offset),
		cmp.Compare(e.Row, other.Row),
		bytes.Compare(e.Operation[:], other.Operation[:]),
		cmp.Compare(e.Version, other.Version),
	)
}
