package main

import (
	"strings"
	"testing"
)

// Each command tells what it takes: each option of its usage with its meaning, and examples that it understands.
func TestHelpOfEachCommand(t *testing.T) {
	t.Parallel()
	for _, c := range commands() {
		status, out, errs := runCommand(t, nil, c.name, "--help")
		if status != statusDone || errs != "" || !strings.HasPrefix(out, "usage: relay "+c.name) {
			t.Errorf("relay %s --help: status %d, %q, %q", c.name, status, out, errs)
		}
		for _, example := range c.examples {
			if !strings.Contains(out, "  "+example+"\n") {
				t.Errorf("relay %s --help does not show %q: %q", c.name, example, out)
			}
			// With a faulty configuration it gets as far as that if it understands its command line.
			status, _, errs := runCommand(t, map[string]string{"RELAY_WORKERS": "none"}, strings.Fields(example)[1:]...)
			if status != statusUsage || !strings.Contains(errs, "the configuration has") {
				t.Errorf("%s: status %d, %q", example, status, errs)
			}
		}
	}
}

func TestOptionsAreExplained(t *testing.T) {
	t.Parallel()
	for line, options := range map[string]string{
		"once":           "--max N --tenant ID --non-tenant",
		"check":          "--json",
		"migrate":        "--standalone --grant-to ROLE --ledger --dry-run",
		"status":         "--json",
		"parked list":    "--json --tenant ID --non-tenant",
		"parked show":    "--json --payload --tenant ID --non-tenant",
		"parked retry":   "--all --tenant ID --non-tenant",
		"parked discard": "--reason TEXT --tenant ID --non-tenant",
		"ledger list":    "--json",
		"ledger release": "--may-duplicate",
		"ledger mark":    "--may-lose",
		"verify":         "--json",
		"tail":           "--from-beginning --max N",
	} {
		_, out, _ := runCommand(t, nil, append(strings.Fields(line), "--help")...)
		for option := range strings.SplitSeq(options[2:], " --") {
			_, rest, found := strings.Cut(out, "\n  --"+option+" ")
			if meaning, _, _ := strings.Cut(rest, "\n"); !found || strings.TrimSpace(meaning) == "" {
				t.Errorf("relay %s --help does not explain --%s: %q", line, option, out)
			}
		}
	}
}

// Options are told of as people type them, with two dashes, and a misspelt one with what was meant.
func TestMisspeltOptions(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"status --jsn":              "there is no option --jsn (did you mean --json?); see relay status --help",
		"migrate -dryrun":           "there is no option --dryrun (did you mean --dry-run?); see relay migrate --help",
		"parked discard 1 --reson":  "there is no option --reson (did you mean --reason?); see relay parked discard --help",
		"check --yaml":              "there is no option --yaml; see relay check --help",
		"once --x":                  "there is no option --x; see relay once --help",
		"tail --from-start --max 1": "there is no option --from-start; see relay tail --help",
	} {
		status, out, errs := runCommand(t, nil, strings.Fields(line)...)
		if told, _, _ := strings.Cut(errs, "\n"); status != statusUsage || out != "" || !strings.HasSuffix(told, ": "+want) {
			t.Errorf("relay %s: status %d, %s%s", line, status, out, errs)
		}
	}
}
