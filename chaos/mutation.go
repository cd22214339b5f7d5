package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutation is a step of exactly-once mode that can be taken out of the relay under test, to see that this test would tell.
type mutation struct {
	file      string // in the module
	text, new string // what stands there once, and what takes its place
}

var mutations = map[string]mutation{
	// Another relay's slot is not fenced before its claims are decided: it may still commit them.
	"fence": {
		"relay/help.go",
		"if err := r.cfg.ExactlyOnce.Sink.Fence(ctx, slot); err != nil {\n\t\treturn err\n\t}",
		"",
	},
	// The ledger is not looked up: what was claimed is taken for not committed.
	"look-up": {
		"relay/epoch.go",
		"entry, ok, err := w.cfg.ExactlyOnce.Sink.Last(ctx, w.slot)",
		"entry, ok, err := w.cfg.ExactlyOnce.Sink.Last(ctx, w.slot)\n\tentry.Token, entry.Rows = w.slot.newToken(), nil",
	},
}

// overlay writes what the go command needs to build the module with a step taken out, into a folder, and gives the file's path.
func (m mutation) overlay(dir string) (path string, err error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", fmt.Errorf("take a step out (run this in the module's folder): %w", err)
	}
	if n := strings.Count(string(text), m.text); n != 1 {
		return "", fmt.Errorf("take a step out: it stands %d times in %s", n, m.file)
	}
	mutated := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(mutated, []byte(strings.Replace(string(text), m.text, m.new, 1)), 0o644); err != nil {
		return "", err
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o644)
}
