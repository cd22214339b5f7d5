package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"outboxrelay/internal/settings"
	"outboxrelay/kafkasink"
	"outboxrelay/relay"
)

// checkTimeout bounds all checks together; what has no answer by then is a fault.
const checkTimeout = 20 * time.Second

// checkAnswer is what "relay check --json" prints.
type checkAnswer struct {
	Result string       `json:"result"` // the worst level of all checks
	Checks []checkEntry `json:"checks"`
}

type checkEntry struct {
	Check string `json:"check"`
	Level string `json:"level"`
	Seen  string `json:"seen"`
	Do    string `json:"do"`
}

// check tells whether this configuration would work, before anything runs.
func (a *app) check(ctx context.Context, args []string) error {
	s, asJSON, err := a.reporting("check", args)
	if err != nil {
		return err
	}
	findings := inspect(ctx, s)
	if asJSON {
		err = a.printChecksJSON(findings)
	} else {
		err = a.printChecks(findings)
	}
	if err == nil && worst(findings) == relay.Fail {
		err = errFaultFound
	}
	return err
}

// inspect looks at database and broker at once. Neither waits for the other to be well.
func inspect(ctx context.Context, s *settings.Settings) []relay.Finding {
	ctx, cancel := context.WithTimeoutCause(ctx, checkTimeout, fmt.Errorf("no answer in %s", checkTimeout))
	defer cancel()
	var database, broker []relay.Finding
	var both sync.WaitGroup
	both.Go(func() { database = inspectDatabase(ctx, s) })
	both.Go(func() { broker = kafkasink.Inspect(ctx, sinkConfig(s, nil), s.Scopes) })
	both.Wait()
	findings := append(database, broker...)
	if s.Delivery == settings.ExactlyOnce && worst(findings) != relay.Fail {
		findings = append(findings, inspectClaims(ctx, s)...)
	}
	return findings
}

func inspectDatabase(ctx context.Context, s *settings.Settings) []relay.Finding {
	db, err := openStore(s)
	if err != nil {
		// The text was found good before, so it is a file that it names.
		return []relay.Finding{{
			Check: "database", Level: relay.Fail, Seen: err.Error(),
			Do: "make the certificate files that RELAY_DATABASE_URL names readable",
		}}
	}
	defer db.Close()
	findings := db.Inspect(ctx, s.Namespace, s.Scopes)
	if worst(findings) == relay.Fail {
		return findings // events can't be counted, or only for the same reasons not
	}
	return append(findings, db.Backlog(ctx, s.Namespace, s.Scopes)...)
}

// worst is the worst level among findings.
func worst(findings []relay.Finding) (level relay.Level) {
	for _, f := range findings {
		level = max(level, f.Level)
	}
	return level
}

func (a *app) printChecks(findings []relay.Finding) error {
	level := a.levels(len("warn"))
	for _, f := range findings {
		line := fmt.Sprintf("%s  %s: %s", level(f.Level.String()), f.Check, printable(f.Seen))
		if f.Do != "" {
			line += " -> " + printable(f.Do)
		}
		if _, err := fmt.Fprintln(a.stdout, line); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printChecksJSON(findings []relay.Finding) error {
	answer := checkAnswer{Result: worst(findings).String(), Checks: []checkEntry{}}
	for _, f := range findings {
		answer.Checks = append(answer.Checks, checkEntry{Check: f.Check, Level: f.Level.String(), Seen: f.Seen, Do: f.Do})
	}
	return json.NewEncoder(a.stdout).Encode(answer)
}
