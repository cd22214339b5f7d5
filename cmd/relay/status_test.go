package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"outboxrelay/internal/childproc"
	"outboxrelay/internal/monitor"
)

// In exactly-once mode status tells of the slots, as the brokers have them, or why it can't: the counts come anyway.
func TestStatusTellsOfSlots(t *testing.T) {
	t.Parallel()
	s := newExactStage(t)
	asJSON := func() (answer monitor.Status) {
		t.Helper()
		status, out, errs := runCommand(t, s.env, "status", "--json")
		if err := json.Unmarshal([]byte(out), &answer); err != nil || status != statusDone || errs != "" {
			t.Fatalf("status %d, %v, %s%s", status, err, out, errs)
		}
		return answer
	}
	if answer := asJSON(); answer.Totals.Due != 3 || answer.SlotsError != "" || len(answer.Slots) != 0 {
		t.Errorf("%+v before a relay has run, want 3 due events and no slots", answer)
	}
	s.env["RELAY_WORKERS"] = "2"
	relay := startRelay(t, s.env)
	relay.delivered(t, s.broker.Broker, s.topic)
	eventually(t, func() error { return relay.shows(`relay_slots{state="held"} 2`) })
	answer := asJSON()
	if len(answer.Slots) != 2 {
		t.Fatalf("%+v, want two slots", answer)
	}
	_, out, _ := runCommand(t, s.env, "status")
	if !strings.Contains(out, "\n\nSLOT    STATE ") {
		t.Errorf("no slots in\n%s", out)
	}
	for i, slot := range answer.Slots {
		if want := fmt.Sprintf("tx-0-%d", i); slot.Slot != want || slot.State == "" || slot.Hangs || !strings.Contains(out, "\n"+want+"  "+slot.State+" ") {
			t.Errorf("%+v, want %s, and as much in\n%s", slot, want, out)
		}
	}

	ports, err := childproc.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	s.env["RELAY_KAFKA_BROKERS"] = childproc.Loopback(ports[0])
	if answer := asJSON(); answer.SlotsError == "" || answer.CountedAt == nil {
		t.Errorf("%+v without a broker, want counts and the error", answer)
	}
	if _, out, _ := runCommand(t, s.env, "status"); !strings.Contains(out, "\nslots: look at ledger topic") {
		t.Errorf("no error in\n%s", out)
	}
}
