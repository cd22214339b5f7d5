package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		runs int
		only string
	}{
		"defaults":       {nil, full.runs, ""},
		"quick":          {[]string{"-quick"}, small.runs, ""},
		"quick, 2 times": {[]string{"-quick", "-runs", "2"}, 2, ""},
		"one scenario":   {[]string{"-only", "claim"}, full.runs, "claim"},
		"with peers":     {[]string{"-quick", "-peers", "-only", "drain"}, small.runs, "drain"},
		"writing beside": {[]string{"-quick", "-peers", "-only", "writers"}, small.runs, "writers"},
	} {
		o, err := parse(test.args, &bytes.Buffer{})
		if err != nil || o.runs != test.runs || o.only != test.only {
			t.Errorf("%s: %d runs of %q, %v; want %d of %q", name, o.runs, o.only, err, test.runs, test.only)
		}
	}
}

func TestPeersAreAskedFor(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{false, true} {
		args := []string{"-quick"}
		if asked {
			args = append(args, "-peers")
		}
		o, err := parse(args, &bytes.Buffer{})
		if err != nil || o.peers != asked {
			t.Errorf("%v: peers = %t, %v", args, o.peers, err)
		}
		s := &stage{sizes: o.sizes}
		if got := slices.Contains(s.postgresSettings(), "wal_level=logical"); got != asked {
			t.Errorf("%v: the server's log is for Debezium: %t", args, got)
		}
		if got := len(s.peerWays(database{})) > 0; got != asked {
			t.Errorf("%v: ways of others: %t", args, got)
		}
	}
}

func TestBadUsageNamesTheFault(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"-runs", "-1"}, "-runs must be 1 or more"},
		{[]string{"-only", "speed"}, "drain, claim, relays, latency, exactly-once, writers, backlogs, verify"},
		{[]string{"-peers", "-only", "claim"}, "-peers is about drain and writers"},
		{[]string{"fast"}, `unexpected argument "fast"`},
		{[]string{"-slow"}, "-slow"},
	} {
		var stdout, stderr bytes.Buffer
		if status := run(t.Context(), test.args, &stdout, &stderr); status != statusUsage {
			t.Errorf("%v: status %d, want %d", test.args, status, statusUsage)
		}
		if !strings.Contains(stderr.String(), test.says) {
			t.Errorf("%v: standard error lacks %q:\n%s", test.args, test.says, stderr.String())
		}
	}
}
