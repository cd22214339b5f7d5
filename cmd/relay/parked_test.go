package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"outboxrelay/envelope"
	"outboxrelay/internal/sample"
)

// parkedStage is a stage where the first of three events of each operation is parked: two
// operations of tenant acme, and one without a tenant. It gives those events' row ids.
func parkedStage(t *testing.T) (s *stage, acme []int64, nonTenant int64) {
	t.Helper()
	s = newStage(t)
	s.env["RELAY_TENANTS"], s.env["RELAY_NON_TENANT"] = "acme,idle", "true"
	s.fill(t, namespace)
	s.fill(t, namespace)
	if err := (sample.Application{Namespace: namespace}).Fill(t.Context(), s.db.Pool(t), envelope.NonTenant(), 1, 3); err != nil {
		t.Fatal(err)
	}
	s.change(t, `update aksara_operation_outbox o set export_attempts = 1,
		next_attempt_at = case when v.state_version = 1 then 'infinity' else clock_timestamp() + interval '1 day' end,
		last_error = case when v.state_version = 1 then 'too large' || chr(27) || '[2J' end
		from aksara_operation_transitions v where v.id = o.transition_id`)
	rows, err := s.db.Pool(t).Query(t.Context(), `select id from aksara_operation_outbox where next_attempt_at = 'infinity' order by id`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&nonTenant); err != nil {
			t.Fatal(err)
		}
		acme = append(acme, nonTenant)
	}
	if len(acme) != 3 {
		t.Fatalf("%d events are parked, want 3", len(acme))
	}
	return s, acme[:2], nonTenant
}

// count is how many rows of the outbox fulfil a condition.
func (s *stage) count(t *testing.T, condition string) (n int) {
	t.Helper()
	if err := s.db.Pool(t).QueryRow(t.Context(), "select count(*) from aksara_operation_outbox where "+condition).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// ceID is the ce_id of a row.
func (s *stage) ceID(t *testing.T, row int64) (id string) {
	t.Helper()
	err := s.db.Pool(t).QueryRow(t.Context(), `select operation_id || ':' || (payload ->> 'state_version')
		from aksara_operation_outbox where id = $1`, row).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func jsonAnswer(t *testing.T, out string) (lines []parkedLine) {
	t.Helper()
	for line := range strings.Lines(out) {
		var l parkedLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		lines = append(lines, l)
	}
	return lines
}

func TestParkedList(t *testing.T) {
	t.Parallel()
	s, acme, nonTenant := parkedStage(t)
	for args, want := range map[string][]int64{
		"":              {acme[0], acme[1], nonTenant},
		"--tenant acme": acme,
		"--tenant idle": nil,
		"--non-tenant":  {nonTenant},
	} {
		status, out, errs := runCommand(t, s.env, append([]string{"parked", "list", "--json"}, strings.Fields(args)...)...)
		lines := jsonAnswer(t, out)
		if status != statusDone || errs != "" || len(lines) != len(want) {
			t.Fatalf("list %s: status %d, %s%s", args, status, out, errs)
		}
		for i, l := range lines {
			if l.ID != want[i] || (l.Tenant == nil) != (l.ID == nonTenant) || l.CEID != s.ceID(t, l.ID) || l.CEID != l.OperationID+":1" ||
				l.Behind != 2 || l.Attempts != 1 || l.Reason != "too large\x1b[2J" || l.CreatedAt == "" || l.PayloadBytes == 0 || l.Payload != nil {
				t.Errorf("list %s: %+v", args, l)
			}
		}
	}
	status, out, errs := runCommand(t, s.env, "parked", "list")
	if status != statusDone || errs != "" || strings.Count(out, "\n") != 4 || strings.Contains(out, "\x1b") || !strings.Contains(out, `"too large\x1b[2J"`) {
		t.Errorf("list: status %d, %q%s", status, out, errs)
	}
	for _, part := range []string{`tenant "acme"`, "non-tenant scope", s.ceID(t, acme[1]), fmt.Sprint(nonTenant)} {
		if !strings.Contains(out, part) {
			t.Errorf("list does not tell %s:\n%s", part, out)
		}
	}
}

func TestParkedListEnds(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	acme, err := envelope.Tenant("acme")
	if err != nil {
		t.Fatal(err)
	}
	if err := (sample.Application{Namespace: namespace}).Fill(t.Context(), s.db.Pool(t), acme, parkedListCap+1, 1); err != nil {
		t.Fatal(err)
	}
	s.change(t, `update aksara_operation_outbox set next_attempt_at = 'infinity', last_error = 'x'`)
	status, out, errs := runCommand(t, s.env, "parked", "list")
	if n := strings.Count(out, "\n"); status != statusDone || n != parkedListCap+1 || !strings.Contains(errs, "there are more") {
		t.Errorf("status %d, %d lines, %s", status, n, errs)
	}
	status, out, errs = runCommand(t, s.env, "parked", "retry", "--all", "--tenant", "acme")
	if status != statusDone || out != "10001 parked events are due again, and 0 behind them\n" || errs != "" {
		t.Errorf("status %d, %s%s", status, out, errs)
	}
}

func TestParkedShow(t *testing.T) {
	t.Parallel()
	s, acme, _ := parkedStage(t)
	s.change(t, fmt.Sprintf(`update aksara_operation_outbox set payload = payload || '{"secret": "hush\u202e"}' where id = %d`, acme[0]))
	id := s.ceID(t, acme[0])
	status, out, errs := runCommand(t, s.env, "parked", "show", id, "--tenant", "acme", fmt.Sprint(acme[1]))
	if status != statusDone || errs != "" || strings.Contains(out, "hush") || strings.Contains(out, "\x1b") {
		t.Errorf("status %d, %q%s", status, out, errs)
	}
	for _, part := range []string{id, fmt.Sprint("ID        ", acme[0]), fmt.Sprint("ID        ", acme[1]), "BEHIND    2", `REASON    "too large\x1b[2J"`} {
		if !strings.Contains(out, part) {
			t.Errorf("show does not tell %s:\n%s", part, out)
		}
	}
	status, out, _ = runCommand(t, s.env, "parked", "show", "--payload", "--tenant", "acme", id)
	if status != statusDone || !strings.Contains(out, `hush\u202e`) {
		t.Errorf("status %d, %s", status, out)
	}
	status, out, _ = runCommand(t, s.env, "parked", "show", "--json", "--payload", "--tenant", "acme", id)
	lines := jsonAnswer(t, out)
	if status != statusDone || len(lines) != 1 || !strings.Contains(string(lines[0].Payload), "hush\u202e") {
		t.Errorf("status %d, %s", status, out)
	}
}

func TestParkedRetryAndDiscard(t *testing.T) {
	t.Parallel()
	s, acme, nonTenant := parkedStage(t)
	id := s.ceID(t, acme[0])
	// Each event once, however often and by whichever name it is asked for.
	status, out, errs := runCommand(t, s.env, "parked", "retry", "--tenant", "acme", id, fmt.Sprint(acme[0]), id)
	if want := fmt.Sprintf("%d (%s) is due again, and 2 behind it\n", acme[0], id); status != statusDone || out != want || errs != "" {
		t.Errorf("retry: status %d, %s%s, want %s", status, out, errs, want)
	}
	if n := s.count(t, "next_attempt_at <= clock_timestamp()"); n != 3 {
		t.Errorf("%d rows are due, want 3", n)
	}
	status, out, errs = runCommand(t, s.env, "parked", "discard", fmt.Sprint(acme[1]), "--tenant", "acme", "--reason", "no longer needed")
	if want := fmt.Sprintf("%d (%s) is discarded; 2 behind it are due\n", acme[1], s.ceID(t, acme[1])); status != statusDone || out != want || errs != "" {
		t.Errorf("discard: status %d, %s%s, want %s", status, out, errs, want)
	}
	if n := s.count(t, "exported_at is not null and last_error = 'discarded: no longer needed'"); n != 1 {
		t.Errorf("%d rows are discarded, want 1", n)
	}
	status, out, errs = runCommand(t, s.env, "parked", "retry", "--all", "--non-tenant")
	if status != statusDone || out != "1 parked events are due again, and 2 behind them\n" || errs != "" {
		t.Errorf("retry --all: status %d, %s%s", status, out, errs)
	}
	if n := s.count(t, "next_attempt_at = 'infinity' and exported_at is null"); n != 0 {
		t.Errorf("%d rows are parked, row %d among them", n, nonTenant)
	}
}

// What can't be done is told one by one, and the rest is done.
func TestParkedTellsWhatIsNotParked(t *testing.T) {
	t.Parallel()
	s, acme, nonTenant := parkedStage(t)
	discarded, foreign := fmt.Sprint(acme[0]), fmt.Sprint(nonTenant)
	if status, _, errs := runCommand(t, s.env, "parked", "discard", discarded, "--tenant", "acme", "--reason", "old\x1b"); status != statusDone {
		t.Fatal(errs)
	}
	status, out, errs := runCommand(t, s.env, "parked", "retry", "--tenant", "acme", discarded, s.ceID(t, acme[0]), foreign, "999999999", fmt.Sprint(acme[1]))
	if status != statusError || !strings.HasPrefix(out, fmt.Sprint(acme[1])) || strings.Count(out, "\n") != 1 {
		t.Errorf("status %d, %s", status, out)
	}
	want := strings.Join([]string{
		`relay parked: ` + discarded + `: not parked, but exported ("discarded: old\x1b")`,
		`relay parked: ` + s.ceID(t, acme[0]) + `: tenant "acme" has no such event that isn't exported`,
		`relay parked: ` + foreign + `: tenant "acme" has no such event`,
		`relay parked: 999999999: tenant "acme" has no such event`,
	}, "\n") + "\n"
	if errs != want {
		t.Errorf("said\n%swant\n%s", errs, want)
	}
	if n := s.count(t, fmt.Sprintf("id = %d and next_attempt_at = 'infinity'", nonTenant)); n != 1 {
		t.Error("another scope's event is no longer parked")
	}
	if status, out, errs := runCommand(t, s.env, "parked", "show", "--json", "--tenant", "acme", "999999999"); status != statusError || out != "" || errs == "" {
		t.Errorf("show: status %d, %s%s", status, out, errs)
	}
}

func TestParkedUsage(t *testing.T) {
	t.Parallel()
	env := variables("postgres://relay@127.0.0.1:1/app", []string{"127.0.0.1:1"}, "events")
	for _, line := range []string{
		"", "--", "nonsense", "--json", "list 1", "list --tenant other", "list --tenant acme --non-tenant", "list --yaml",
		"show", "show 1", "show --tenant acme", "show 0 --tenant acme", "show x --tenant acme", "show 1 --tenant other", "show --all --tenant acme",
		"show 1 --non-tenant", "show 1 --tenant __aksara_global__",
		"retry 1", "retry --tenant acme", "retry --all", "retry --all 1 --tenant acme", "retry 6f1c0d3e-8a55-4d0f-9a67-0d5b6f1a2c3d --tenant acme",
		"discard 1 --tenant acme", "discard 1 --tenant acme --reason=", "discard --all --tenant acme --reason x", "discard --tenant acme --reason x",
	} {
		status, out, errs := runCommand(t, env, append([]string{"parked"}, strings.Fields(line)...)...)
		if status != statusUsage || out != "" || !strings.Contains(errs, "usage: relay parked") {
			t.Errorf("parked %s: status %d, %q, %q", line, status, out, errs)
		}
	}
	for _, line := range []string{"list", "retry 1 --tenant acme"} {
		status, _, errs := runCommand(t, env, append([]string{"parked"}, strings.Fields(line)...)...)
		if status != statusError || errs == "" {
			t.Errorf("parked %s without a database: status %d, %q", line, status, errs)
		}
	}
	for _, line := range []string{"--help", "list --help", "retry --help"} {
		status, out, errs := runCommand(t, env, append([]string{"parked"}, strings.Fields(line)...)...)
		if status != statusDone || !strings.Contains(out, "usage: relay parked") || errs != "" {
			t.Errorf("parked %s: status %d, %q, %q", line, status, out, errs)
		}
	}
}
