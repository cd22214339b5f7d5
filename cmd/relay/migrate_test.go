package main

import (
	"strings"
	"testing"
)

// Whoever owns the tables need not know how the relay is configured: the database is enough, and for the ledger the brokers.
func TestMigrateNeedsWhatItUses(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	database := map[string]string{"RELAY_DATABASE_URL": s.db.URL}
	if status, out, errs := runCommand(t, database, "migrate"); status != statusDone || !strings.Contains(out, "relay_outbox_operation") {
		t.Errorf("with the database alone: status %d, %s%s", status, out, errs)
	}
	exactly := map[string]string{"RELAY_DATABASE_URL": s.db.URL, "RELAY_DELIVERY": "exactly-once"}
	if status, out, errs := runCommand(t, exactly, "migrate", "--ledger"); status != statusUsage || out != "" ||
		!strings.Contains(errs, "1 fault:") || !strings.Contains(errs, "RELAY_KAFKA_BROKERS: is required") {
		t.Errorf("without brokers: status %d, %s%s", status, out, errs)
	}
	exactly["RELAY_KAFKA_BROKERS"] = s.env["RELAY_KAFKA_BROKERS"]
	if status, out, errs := runCommand(t, exactly, "migrate", "--ledger"); status != statusDone || !strings.Contains(out, "ledger topic relay.ledger: created") {
		t.Errorf("with brokers: status %d, %s%s", status, out, errs)
	}
}

// What isn't needed is not passed over when it is wrong: it was meant for something.
func TestMigrateTellsOfWrongSettings(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"RELAY_DATABASE_URL": "postgres://owner@127.0.0.1:1/app", "RELAY_KAFKA_BROKERS": "kafka", "RELAY_TENANTS": "a,a", "RELAY_NAMESPACES": "shop",
	}
	status, out, errs := runCommand(t, env, "migrate")
	if status != statusUsage || out != "" || !strings.Contains(errs, "3 faults") {
		t.Errorf("status %d, %s%s", status, out, errs)
	}
	for _, name := range []string{"RELAY_KAFKA_BROKERS: ", "RELAY_TENANTS: ", "RELAY_NAMESPACES: is unknown"} {
		if !strings.Contains(errs, name) {
			t.Errorf("nothing is said of %s:\n%s", name, errs)
		}
	}
}
