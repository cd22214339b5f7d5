package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

// Troubles that come by the thousand are one line, and their end is told once, by what
// happens to the scope that the line named: another scope's success says nothing.
func TestDiary(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := newDiary(zerolog.New(&out))
	a, err := envelope.Tenant("a")
	if err != nil {
		t.Fatal(err)
	}
	b := envelope.NonTenant()
	for range 1000 {
		d.Trouble(relay.Trouble{Kind: relay.DatabaseTrouble, Scope: a, Err: errors.New("time-out")})
		d.Claimed(relay.Claim{Scope: b}, 0)
	}
	if n := strings.Count(out.String(), "\n"); n != 1 || !strings.Contains(out.String(), "time-out") {
		t.Errorf("%d lines, want one:\n%.1000s", n, out.String())
	}
	for range 3 {
		d.Claimed(relay.Claim{Scope: a}, 0)
		d.Trouble(relay.Trouble{Kind: relay.DatabaseTrouble, Scope: a, Err: errors.New("time-out")})
	}
	if n := strings.Count(out.String(), "answers again"); n != 1 {
		t.Errorf("the end was told %d times, want once a line of trouble", n)
	}

	d.Trouble(relay.Trouble{Kind: relay.RowTrouble, Scope: a, Row: 4711, Err: errors.New("too large")})
	if !strings.Contains(out.String(), `"row":4711`) {
		t.Errorf("the parked row isn't named:\n%s", out.String())
	}
	d.Trouble(relay.Trouble{Kind: relay.SinkTrouble, Scope: a, Err: errors.New("no topic")})
	d.Settled(relay.Claim{Scope: a}, []relay.Verdict{{Wait: relay.Park}}, nil, 0)
	d.Settled(relay.Claim{Scope: a}, []relay.Verdict{{Exported: true}}, nil, 0)
	if n := strings.Count(out.String(), "events are sent again"); n != 1 {
		t.Errorf("the end of the sink's trouble was told %d times", n)
	}
	d.client("odd \x1b[31m words")
	if strings.Contains(out.String(), "\x1b") {
		t.Error("an escape sequence of the client's went through")
	}
}

// The page for operators has each line that may be met.
func TestOperationsPageHasTheLog(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{badTenantsFile, lacking}
	for kind := relay.DatabaseTrouble; troubleText(kind) != "trouble"; kind++ {
		lines = append(lines, troubleText(kind))
	}
	for _, line := range lines {
		if !strings.Contains(string(page), "`"+line+"`") {
			t.Errorf("docs/operations.md lacks %q", line)
		}
	}
}
