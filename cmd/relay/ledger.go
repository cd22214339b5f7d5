package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"

	"outboxrelay/internal/settings"
	"outboxrelay/kafkasink"
	"outboxrelay/relay"
)

const ledgerArgs = "list [--json] | release CLAIM... --may-duplicate | mark CLAIM... --may-lose"

// ledger tells of claims of exactly-once mode, and settles those of which nobody can know what was committed.
func (a *app) ledger(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch rest := args[1:]; args[0] {
		case "list":
			return a.ledgerList(ctx, rest)
		case "release":
			return a.ledgerSettle(ctx, rest, "release", "released", "may-duplicate", "their events are sent again, although they may have been delivered")
		case "mark":
			return a.ledgerSettle(ctx, rest, "mark", "marked", "may-lose", "their events are never sent, although they may not have been delivered")
		}
	}
	if err := parse(flags("ledger"), args); err != nil {
		return err // it may ask for help
	}
	return usageError("say what to do: list, release or mark")
}

// openClaims gives the claims that hold rows now, and a relay to settle them with.
func openClaims(ctx context.Context, s *settings.Settings) (all []relay.Claimed, r *relay.Relay, done func(), err error) {
	if s.Delivery != settings.ExactlyOnce {
		return nil, nil, nil, usageError("there is a ledger in exactly-once mode only: set RELAY_DELIVERY=exactly-once")
	}
	db, err := openStore(s)
	if err != nil {
		return nil, nil, nil, err
	}
	sink, err := kafkasink.New(sinkConfig(s, nil))
	if err != nil {
		db.Close()
		return nil, nil, nil, err
	}
	done = func() {
		sink.Close()
		db.Close()
	}
	if r, err = relay.New(relayConfig(s, sink, db), db, sink, nil); err == nil {
		r.SetScopes(s.Scopes)
		all, err = r.Claims(ctx)
	}
	if err != nil {
		done()
	}
	return all, r, done, err
}

// ledgerEntry is a claim in the JSON that "relay ledger list --json" prints.
type ledgerEntry struct {
	Claim   string         `json:"claim"`
	Slot    string         `json:"slot"` // "" if another exporter made it
	Rows    map[string]int `json:"rows"` // by scope as the table has it
	Expired bool           `json:"expired"`
	Fate    relay.Fate     `json:"fate"`
	Error   string         `json:"error,omitempty"`
}

func (a *app) ledgerList(ctx context.Context, args []string) error {
	s, asJSON, err := a.reporting("ledger list", args)
	if err != nil {
		return err
	}
	claims, _, done, err := openClaims(ctx, s)
	if err != nil {
		return err
	}
	defer done()
	if asJSON {
		entries := []ledgerEntry{}
		for _, c := range claims {
			entry := ledgerEntry{Claim: c.Token, Slot: c.Slot.ID, Rows: map[string]int{}, Expired: c.Expired(), Fate: c.Fate}
			for _, h := range c.Held {
				entry.Rows[h.Scope.Stored()] = len(h.Rows)
			}
			if c.Err != nil {
				entry.Error = c.Err.Error()
			}
			entries = append(entries, entry)
		}
		return json.NewEncoder(a.stdout).Encode(entries)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "CLAIM\tSCOPE\tROWS\tWHAT IS KNOWN")
	for _, c := range claims {
		known := string(c.Fate)
		if c.Err != nil {
			known += ": " + c.Err.Error()
		}
		for _, h := range c.Held {
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", printable(c.Token), h.Scope, len(h.Rows), printable(known))
		}
	}
	return w.Flush()
}

// ledgerSettle settles claims by the word of whoever runs this, who has to say what it may cost.
func (a *app) ledgerSettle(ctx context.Context, args []string, what, done, word, cost string) error {
	set := flags("ledger " + what)
	said := set.Bool(word, false, "say so: "+cost)
	tokens, err := parseMixed(set, args)
	switch {
	case err != nil:
		return err
	case len(tokens) == 0:
		return usageError("say which claims: relay ledger list shows them")
	case !*said:
		return usageError(fmt.Sprintf("%s: say that this is meant with --%s", cost, word))
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	claims, r, end, err := openClaims(ctx, s)
	if err != nil {
		return err
	}
	defer end()
	failed := false
	for _, token := range tokens {
		i := slices.IndexFunc(claims, func(c relay.Claimed) bool { return c.Token == token })
		if i < 0 {
			err = errors.New("no rows of the configured scopes are held by it")
		} else {
			err = r.Conclude(ctx, claims[i], what == "mark")
		}
		if err != nil {
			failed = true
			fmt.Fprintf(a.stderr, "%s: %s\n", printable(token), printable(err.Error()))
			continue
		}
		fmt.Fprintf(a.stdout, "%s: %s\n", printable(token), done)
	}
	if failed {
		return errSilent
	}
	return nil
}
