package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/store"
)

// parkedTableRows is how many rows of a table are aligned, and held back, at once.
const parkedTableRows = 1000

// parkedEvent is a parked event as it is printed.
type parkedEvent struct {
	*store.Event
	scope       envelope.Scope
	withPayload bool
	payload     []byte // nil if it is too large to be read
}

// parkedPrinter prints events, at the latest when it is closed.
type parkedPrinter interface {
	print(parkedEvent) error
	close() error
}

// parkedTable prints a row for each event.
type parkedTable struct {
	w    *tabwriter.Writer
	rows int
}

func newParkedTable(w io.Writer) *parkedTable {
	t := &parkedTable{w: tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
	fmt.Fprintln(t.w, "SCOPE\tID\tEVENT\tCREATED\tATTEMPTS\tBEHIND\tREASON")
	return t
}

func (t *parkedTable) print(e parkedEvent) error {
	fmt.Fprintf(t.w, "%s\t%d\t%s\t%s\t%d\t%s\t%s\n",
		e.scope, e.ID, eventName(e.Event), createdText(e.CreatedAt), e.Attempts, behindText(e.Behind), printable(e.Error))
	if t.rows++; t.rows%parkedTableRows == 0 {
		return t.w.Flush()
	}
	return nil
}

func (t *parkedTable) close() error { return t.w.Flush() }

// parkedSheets prints a line for each thing that is known of an event.
type parkedSheets struct {
	w       io.Writer
	printed bool
}

func (s *parkedSheets) print(e parkedEvent) error {
	if s.printed {
		fmt.Fprintln(s.w)
	}
	s.printed = true
	w := tabwriter.NewWriter(s.w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "SCOPE\t%s\nID\t%d\nEVENT\t%s\nTYPE\t%s\nCREATED\t%s\nATTEMPTS\t%d\nBEHIND\t%s\nSIZE\t%d bytes\nREASON\t%s\n",
		e.scope, e.ID, eventName(e.Event), printable(e.Type), createdText(e.CreatedAt), e.Attempts, behindText(e.Behind),
		e.Bytes, printable(e.Error))
	switch {
	case e.payload != nil:
		fmt.Fprintf(w, "PAYLOAD\t%s\n", printable(string(e.payload)))
	case e.withPayload:
		fmt.Fprintln(w, "PAYLOAD\ttoo large to be shown")
	}
	return w.Flush()
}

func (s *parkedSheets) close() error { return nil }

// parkedLine is one line of "relay parked list --json" and "relay parked show --json".
type parkedLine struct {
	Tenant       *string         `json:"tenant"` // null for the non-tenant scope
	ID           int64           `json:"id"`
	CEID         string          `json:"ce_id,omitempty"` // absent if the payload has no state version
	OperationID  string          `json:"operation_id"`
	StateVersion int64           `json:"state_version,omitempty"`
	Type         string          `json:"type"`
	CreatedAt    string          `json:"created_at,omitempty"` // absent if it is no time
	Attempts     int             `json:"attempts"`
	Behind       int             `json:"behind"` // store.BehindCap: that many or more
	PayloadBytes int64           `json:"payload_bytes"`
	Reason       string          `json:"reason"`
	Payload      json.RawMessage `json:"payload,omitempty"`
}

// parkedLines prints a line of JSON for each event.
type parkedLines struct{ *json.Encoder }

func newParkedLines(w io.Writer) parkedLines {
	lines := parkedLines{json.NewEncoder(w)}
	lines.SetEscapeHTML(false)
	return lines
}

func (l parkedLines) print(e parkedEvent) error {
	line := parkedLine{
		ID: e.ID, CEID: e.CEID(), OperationID: e.OperationID.String(), StateVersion: e.StateVersion, Type: e.Type,
		Attempts: e.Attempts, Behind: e.Behind, PayloadBytes: e.Bytes, Reason: e.Error, Payload: e.payload,
	}
	if id, ok := e.scope.Tenant(); ok {
		line.Tenant = &id
	}
	if hasYear(e.CreatedAt) {
		line.CreatedAt = createdText(e.CreatedAt)
	}
	return l.Encode(line)
}

func (parkedLines) close() error { return nil }

// eventName is an event's ce_id, or as much of it as there is.
func eventName(e *store.Event) string {
	if id := e.CEID(); id != "" {
		return id
	}
	return e.OperationID.String() + ":?"
}

func createdText(t time.Time) string {
	if !hasYear(t) {
		return "outside the years 1 to 9999"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00")
}

// hasYear is true for times that RFC 3339 can express.
func hasYear(t time.Time) bool { return t.UTC().Year() >= 1 && t.UTC().Year() <= 9999 }

// behindText is a number, or that it is the cap or more.
func behindText(n int) string {
	if n >= store.BehindCap {
		return fmt.Sprintf("%d+", store.BehindCap)
	}
	return fmt.Sprint(n)
}
