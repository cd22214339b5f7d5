package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"outboxrelay/envelope"
	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/relayproc"
)

// once exports single events of one configured scope and says how it ended.
func TestOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, relayproc.Standalone)
	f.Fill(relayproc.Tenant(t, "acme"), 1, 3)
	f.Fill(envelope.NonTenant(), 1, 1)
	env := f.Env("acme", map[string]string{"RELAY_NON_TENANT": "true"})
	steps := []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--tenant", "acme"}, 0, `{"outcome":"exported","exported":1}`},
		{[]string{"--tenant", "acme", "--max", "10"}, 0, `{"outcome":"empty","exported":2}`},
		{[]string{"--tenant", "acme"}, 0, `{"outcome":"empty","exported":0}`},
		{[]string{"--non-tenant"}, 0, `{"outcome":"exported","exported":1}`},
		{[]string{"--tenant", "globex"}, 2, ""},
		{[]string{"--tenant", "__aksara_global__"}, 2, ""},
		{[]string{}, 2, ""},
		{[]string{"--tenant", "acme", "--non-tenant"}, 2, ""},
		{[]string{"--tenant", "acme", "--max", "0"}, 2, ""},
	}
	for _, step := range steps {
		stdout, stderr, status := relayproc.Command(t, env, append([]string{"once"}, step.args...)...)
		if status != step.status || strings.TrimSpace(stdout) != step.want {
			t.Errorf("once %v: status %d, %q, want %d, %q\n%s", step.args, status, stdout, step.status, step.want, stderr)
		}
	}
	relayproc.ExactlyOnce(t, f.Events(), 4)

	// An event that can't be sent.
	f.Fill(relayproc.Tenant(t, "acme"), 1, 1)
	f.DB.Exec(t, `update aksara_operation_outbox set payload = '[]' where exported_at is null`)
	stdout, _, status := relayproc.Command(t, env, "once", "--tenant", "acme")
	if status != 1 || !strings.Contains(stdout, `"outcome":"sink_failed","exported":0,"error":"the payload is no JSON object"`) {
		t.Errorf("once with a row fault: status %d, %s", status, stdout)
	}

	// A topic that isn't there: nothing is claimed.
	stdout, _, status = relayproc.Command(t, f.Env("acme", map[string]string{"RELAY_KAFKA_TOPIC": f.Topic + "-missing"}), "once", "--tenant", "acme")
	if status != 1 || !strings.Contains(stdout, "does not exist") {
		t.Errorf("once with a missing topic: status %d, %s", status, stdout)
	}
}

// status counts what waits, for people and for programs.
func TestStatus(t *testing.T) {
	t.Parallel()
	f := newFixture(t, relayproc.Standalone)
	f.Fill(relayproc.Tenant(t, "acme"), 10, 1)
	f.Fill(relayproc.Tenant(t, "globex"), 4100, 3)
	f.DB.Exec(t, `update aksara_operation_outbox set next_attempt_at = 'infinity', last_error = 'x' where id <= 3;
		update aksara_operation_outbox set next_attempt_at = clock_timestamp() + interval '1 hour' where id in (4, 5);
		update aksara_operation_outbox set claimed_by = 'x', claim_expires_at = clock_timestamp() + interval '1 hour' where id = 6;
		update aksara_operation_outbox set exported_at = clock_timestamp() where id = 7`)
	stdout, stderr, status := relayproc.Command(t, f.Env("acme,globex"), "status", "--json")
	var answer struct {
		Namespace string
		Scopes    []struct {
			Tenant    *string
			Due       int
			InFlight  int `json:"in_flight"`
			Delayed   int
			Parked    int
			OldestDue float64 `json:"oldest_due_seconds"`
		}
	}
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil || status != 0 {
		t.Fatalf("status %d, %v: %s%s", status, err, stdout, stderr)
	}
	a, g := answer.Scopes[0], answer.Scopes[1]
	if *a.Tenant != "acme" || a.Due != 3 || a.InFlight != 1 || a.Delayed != 2 || a.Parked != 3 || a.OldestDue <= 0 {
		t.Errorf("acme: %+v", a)
	}
	if g.Due != 10000 {
		t.Errorf("globex: %+v, want the count capped at 10000", g)
	}
	stdout, _, _ = relayproc.Command(t, f.Env("acme,globex"), "status")
	if !strings.Contains(stdout, "10000+") || !strings.Contains(stdout, `tenant "acme"`) {
		t.Errorf("status for people:\n%s", stdout)
	}
}

// tail prints the topic's events as JSON lines.
func TestTail(t *testing.T) {
	t.Parallel()
	f := newFixture(t, relayproc.Standalone)
	f.Fill(relayproc.Tenant(t, "a b"), 2, 2)
	f.Fill(envelope.NonTenant(), 1, 1)
	env := f.Env("a b", map[string]string{"RELAY_NON_TENANT": "true"})
	p := relayproc.Start(t, env)
	f.Drained("true")
	p.Stop()
	stdout, stderr, status := relayproc.Command(t, env, "tail", "--from-beginning", "--max", "5")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if status != 0 || len(lines) != 5 {
		t.Fatalf("status %d, %d lines:\n%s%s", status, len(lines), stdout, stderr)
	}
	tenants := map[string]int{}
	for _, line := range lines {
		var e struct {
			Key, ID, Source, Type, Time, Namespace string
			Tenant                                 *string
			StateVersion                           int64 `json:"state_version"`
			Data                                   json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.ID != fmt.Sprintf("%s:%d", e.Key, e.StateVersion) || e.Namespace != relayproc.Namespace || !strings.Contains(string(e.Data), e.Key) {
			t.Errorf("line %s", line)
		}
		if e.Tenant != nil {
			tenants[*e.Tenant]++
		} else {
			tenants["<none>"]++
		}
	}
	if tenants["a b"] != 4 || tenants["<none>"] != 1 {
		t.Errorf("tenants %v", tenants)
	}

	// It used to wait without a word for a topic that isn't there.
	_, stderr, status = relayproc.Command(t, f.Env("a b", map[string]string{"RELAY_KAFKA_TOPIC": f.Topic + "-missing"}), "tail")
	if status != 1 || !strings.Contains(stderr, "UNKNOWN_TOPIC") {
		t.Errorf("tail of a missing topic: status %d, %s", status, stderr)
	}
}

// config, version, help and bad usage touch no server.
func TestCommandsWithoutServers(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"RELAY_DATABASE_URL": "postgres://u:s3cr3t@db.example/app", "RELAY_DATABASE_PASSWORD": "0th3r-s3cr3t",
		"RELAY_NAMESPACE": "n\x1b[31m", "RELAY_TENANTS": "a", "RELAY_KAFKA_BROKERS": "k:9092",
	}
	if _, _, status := relayproc.Command(t, env, "config"); status != 2 {
		t.Errorf("config with a bad namespace: status %d, want 2", status)
	}
	env["RELAY_NAMESPACE"] = "n"
	stdout, stderr, status := relayproc.Command(t, env, "config")
	if status != 0 || strings.Contains(stdout+stderr, "s3cr3t") || !strings.Contains(stdout, "RELAY_DATABASE_URL") || !strings.Contains(stdout, "***") {
		t.Errorf("config: status %d\n%s%s", status, stdout, stderr)
	}
	if stdout, _, status := relayproc.Command(t, nil, "version"); status != 0 || !strings.HasPrefix(stdout, "relay ") || !strings.Contains(stdout, "go1.") {
		t.Errorf("version: status %d, %s", status, stdout)
	}
	if stdout, _, status := relayproc.Command(t, nil, "--help"); status != 0 || !strings.Contains(stdout, "usage:") {
		t.Errorf("--help: status %d, %s", status, stdout)
	}
	if stdout, _, status := relayproc.Command(t, nil, "tail", "--help"); status != 0 || !strings.Contains(stdout, "--from-beginning") {
		t.Errorf("tail --help: status %d, %s", status, stdout)
	}
	escape := maps.Clone(env)
	escape["RELAY_DATABASE_URL"] = "postgres://re%1b%5b31mlay@127.0.0.1:1/app"
	for _, args := range [][]string{{"status"}, {"once", "--t\x1b[31m"}} {
		if _, stderr, _ := relayproc.Command(t, escape, args...); strings.Contains(stderr, "\x1b") || stderr == "" {
			t.Errorf("relay %v prints an escape sequence, or nothing: %q", args, stderr)
		}
	}
	for _, args := range [][]string{{"nonsense"}, {"run", "extra"}, {"tail", "--nonsense"}} {
		if _, stderr, status := relayproc.Command(t, env, args...); status != 2 || stderr == "" {
			t.Errorf("relay %v: status %d, %q", args, status, stderr)
		}
	}
}

// migrate prepares an empty database, tells what it does, and may be run again.
func TestMigrate(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t, pgtest.Setup{Name: "empty"})
	role := pgtest.User(t, db.Role(t, "relay", ""))
	env := map[string]string{"RELAY_DATABASE_URL": db.URL, "RELAY_DATABASE_SCHEMA": "events"}
	args := []string{"migrate", "--standalone", "--grant-to", strings.Trim(role, `"`)}
	stdout, stderr, status := relayproc.Command(t, env, append(args, "--dry-run")...)
	if status != 0 || !strings.Contains(stdout, "would create") || !strings.Contains(stdout, "create table") {
		t.Errorf("dry run: status %d\n%s%s", status, stdout, stderr)
	}
	pooled := maps.Clone(env)
	pooled["RELAY_DATABASE_POOLED"] = "true"
	if _, stderr, status := relayproc.Command(t, pooled, args...); status != 2 || !strings.Contains(stderr, "RELAY_DATABASE_POOLED") {
		t.Errorf("through a pooler: status %d\n%s", status, stderr)
	}
	if stdout, stderr, status = relayproc.Command(t, env, args...); status != 0 || !strings.Contains(stdout, "relay_outbox_operation: created") ||
		strings.Contains(stdout, "create table") || strings.Contains(stdout, "    ") {
		t.Errorf("first run: status %d\n%s%s", status, stdout, stderr)
	}
	stdout, stderr, status = relayproc.Command(t, env, args...)
	if status != 0 || strings.Contains(stdout, "created") || !strings.Contains(stdout, "already there") {
		t.Errorf("second run: status %d\n%s%s", status, stdout, stderr)
	}
}

// The probes and metrics of a relay that works.
func TestProbesAndMetrics(t *testing.T) {
	t.Parallel()
	f := newFixture(t, relayproc.Standalone)
	f.Fill(relayproc.Tenant(t, "acme-tenant"), 10, 3)
	p := relayproc.Start(t, f.Env("acme-tenant"))
	f.Drained("true")
	for _, path := range []string{"/livez", "/readyz"} {
		if status, body := p.Get(path); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	relayproc.Until(t, "the metrics to tell of 30 events", func() error {
		_, body := p.Get("/metrics")
		for _, line := range []string{
			`relay_events_total{outcome="exported"} 30`, `relay_events_total{outcome="parked"} 0`, "relay_scopes 1",
			"relay_inflight_events 0", "relay_database_up 1", "relay_broker_paused 0", "relay_tenants_file_ok 1",
			"relay_pending_events 0", "relay_parked_events 0", "relay_oldest_due_age_seconds 0", "relay_delivery_lag_seconds_count 30",
			"relay_claim_duration_seconds_count", "relay_publish_duration_seconds_count", "relay_settle_duration_seconds_count",
			"relay_build_info{", `relay_database_connections{state="idle"}`, "relay_kafka_produced_records_total 30", "relay_kafka_buffered_records 0",
		} {
			if !strings.Contains(body, line) {
				return fmt.Errorf("no line %q", line)
			}
		}
		if strings.Contains(body, "acme-tenant") {
			t.Fatal("a metric names a tenant")
		}
		return nil
	})
}
