package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutation takes steps of exactly-once mode out of the relay under test, to see that this test would tell.
type mutation []edit

// edit changes a place in the program.
type edit struct {
	file      string // in the module
	text, new string // what stands there once, and what takes its place
}

// clock has a relay not notice that time has passed, as one whose machine was suspended with its clock: it goes on with what it
// was about to send, however late. That alone does no harm.
var clock = mutation{
	{"relay/transaction.go", "time.Until(s.claim.Expires) < need", "need < 0"},
	{"relay/transaction.go", "context.WithTimeoutCause(ctx, w.cfg.DeliveryTimeout, errTransactionLimit)", "context.WithTimeoutCause(ctx, time.Hour, errTransactionLimit)"},
	{"kafkasink/client.go", "kgo.RecordDeliveryTimeout(cfg.DeliveryTimeout)", "kgo.RecordDeliveryTimeout(time.Hour)"},
}

var mutations = map[string]mutation{
	"clock": clock,
	// And another relay's slot is not fenced before its claims are decided: it may still commit them.
	"fence": append(mutation{{
		"relay/help.go",
		"if err := r.cfg.ExactlyOnce.Sink.Fence(ctx, slot); err != nil {\n\t\treturn err\n\t}",
		"",
	}}, clock...),
	// The ledger is not looked up: what was claimed is taken for not committed.
	"look-up": {{
		"relay/epoch.go",
		"entry, ok, err := w.cfg.ExactlyOnce.Sink.Last(ctx, w.slot)",
		"entry, ok, err := w.cfg.ExactlyOnce.Sink.Last(ctx, w.slot)\n\tentry.Token, entry.Rows = w.slot.newToken(), nil",
	}},
}

// overlay writes what the go command needs to build the module with steps taken out, into a folder, and gives the file's path.
func (m mutation) overlay(dir string) (path string, err error) {
	texts := map[string]string{}
	for _, e := range m {
		if _, read := texts[e.file]; !read {
			text, err := os.ReadFile(e.file)
			if err != nil {
				return "", fmt.Errorf("take a step out (run this in the module's folder): %w", err)
			}
			texts[e.file] = string(text)
		}
		if n := strings.Count(texts[e.file], e.text); n != 1 {
			return "", fmt.Errorf("take a step out: it stands %d times in %s", n, e.file)
		}
		texts[e.file] = strings.Replace(texts[e.file], e.text, e.new, 1)
	}
	replace := map[string]string{}
	for file, text := range texts {
		mutated := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(mutated, []byte(text), 0o644); err != nil {
			return "", err
		}
		original, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		replace[original] = mutated
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o644)
}
