package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"outboxrelay/internal/settings"
)

// The environment that the README tells users to begin with is one that loads.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(string(text))
	if block == nil {
		t.Fatal("the README holds no environment")
	}
	load := regexp.MustCompile("`(set -a; [^`]*)`").FindStringSubmatch(string(text))
	if load == nil {
		t.Fatal("the README does not say how to load it")
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "relay.env"), []byte(block[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	shell := exec.Command("sh", "-c", load[1]+"; env")
	shell.Dir, shell.Env = folder, []string{"PATH=" + os.Getenv("PATH")}
	loaded, err := shell.Output()
	if err != nil {
		t.Fatal(err)
	}
	environ := strings.Split(strings.TrimSpace(string(loaded)), "\n")
	if n := strings.Count(string(loaded), "RELAY_"); n != strings.Count(block[1], "RELAY_") {
		t.Errorf("the shell has %d of the variables:\n%s", n, loaded)
	}
	secret := func(string) ([]byte, error) { return []byte("secret\n"), nil }
	if _, err := settings.Load(environ, secret, "host"); err != nil {
		t.Errorf("the README's environment does not load: %v", err)
	}
}

// commandLine is a line of a page that runs this program, without the comment behind it.
var commandLine = regexp.MustCompile(`^ *(?:\$ )?(?:[A-Z_]+=\S* )*relay ([a-z]+ ?[^#\n]*)$`)

// Each command that a page shows is one that this program understands.
func TestCommandsOfThePages(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, c := range commands() {
		names[c.name] = true
	}
	shown := 0
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile("`relay ([a-z]+)").FindAllStringSubmatch(string(text), -1) {
			if !names[match[1]] {
				t.Errorf("%s speaks of relay %s, which there isn't", page, match[1])
			}
		}
		fenced := false
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
			}
			line, _, _ = strings.Cut(strings.TrimSuffix(line, "\n"), " # ")
			match := commandLine.FindStringSubmatch(line)
			if match == nil || !fenced && !strings.HasPrefix(line, "    ") {
				continue
			}
			shown++
			words := strings.Fields(regexp.MustCompile(`"[^"]*"`).ReplaceAllString(match[1], "text"))
			// With a faulty configuration it gets as far as that, or needs none.
			if status, _, errs := runCommand(t, map[string]string{"RELAY_WORKERS": "none"}, words...); status != statusDone && !strings.Contains(errs, "the configuration has") {
				t.Errorf("%s shows %q: %s", page, match[0], errs)
			}
		}
	}
	if shown < 20 {
		t.Errorf("only %d commands were found in the pages", shown)
	}
}
