package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"outboxrelay/internal/settings"
)

// The environment that the README tells users to begin with is one that loads, and it
// lists the commands that there are.
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
	var environ []string
	for line := range strings.Lines(block[1]) {
		environ = append(environ, strings.TrimSpace(line))
	}
	secret := func(string) ([]byte, error) { return []byte("secret\n"), nil }
	if _, err := settings.Load(environ, secret, "host"); err != nil {
		t.Errorf("the README's environment does not load: %v", err)
	}

	names := map[string]bool{}
	for _, c := range commands() {
		names[c.name] = true
	}
	for _, match := range regexp.MustCompile("`relay ([a-z]+)").FindAllStringSubmatch(string(text), -1) {
		if !names[match[1]] {
			t.Errorf("the README speaks of relay %s, which there isn't", match[1])
		}
	}
}
