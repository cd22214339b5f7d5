package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"outboxrelay/envelope"
)

var one = transition{tenant: "oak", operation: uuid.MustParse("6b0c5d3e-0000-4000-8000-000000000001"), version: 1}

// What is heard too early is shown later: nothing is shown before what led to it.
func TestJournalShowsCausesFirst(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	j := newJournal(newScreen(&out))
	j.arrived(record(t, one))
	j.heard(change{Kind: written, Tenant: "oak", Rows: []changedRow{{ID: 7, Operation: one.operation, Version: 1, State: "ready"}}})
	j.heard(change{Kind: exported, Tenant: "oak", Rows: []changedRow{{ID: 7}}})
	j.heard(change{Kind: claimed, Tenant: "oak", Rows: []changedRow{{ID: 7, Attempts: 1}}})
	j.arrived(record(t, one))
	j.heard(change{Kind: claimed, Tenant: "oak", Rows: []changedRow{{ID: 7, Attempts: 2}}})

	want := []string{written, claimed, delivered, exported, claimed, duplicate}
	if got := kinds(out.String()); !slices.Equal(got, want) {
		t.Errorf("shown %q, want %q", got, want)
	}
	if err := j.await(t.Context(), "exported", isExported, one); err != nil {
		t.Error(err)
	}
}

func TestJournalWaitsOnlyForItsContext(t *testing.T) {
	t.Parallel()
	j := newJournal(newScreen(&bytes.Buffer{}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.await(ctx, "written", isWritten, one); err == nil {
		t.Error("an event that nobody wrote was awaited without an error")
	}
}

// kinds is the third word of each line that tells of a happening: after the time and its unit.
func kinds(shown string) (kinds []string) {
	for line := range strings.Lines(shown) {
		kinds = append(kinds, strings.Fields(line)[2])
	}
	return kinds
}

// record is a record as the relay makes it of a transition.
func record(t *testing.T, of transition) *delivery {
	t.Helper()
	scope, err := envelope.Tenant(of.tenant)
	if err != nil {
		t.Fatal(err)
	}
	event, err := envelope.New(namespace, scope, of.operation, "type", epoch, []byte(payload(of)))
	if err != nil {
		t.Fatal(err)
	}
	return &delivery{record: event.Record(), event: event}
}
