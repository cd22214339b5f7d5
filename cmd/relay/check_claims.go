package main

import (
	"context"
	"fmt"
	"slices"

	"outboxrelay/internal/settings"
	"outboxrelay/relay"
)

// inspectClaims tells whether relays of exactly-once mode can settle what is claimed now, and go on from what the ledger says.
func inspectClaims(ctx context.Context, s *settings.Settings) []relay.Finding {
	claims, r, done, err := openClaims(ctx, s)
	if err != nil {
		return []relay.Finding{{Check: "claims", Level: relay.Fail, Seen: err.Error(), Do: "see the servers' logs, and check again"}}
	}
	defer done()
	findings := []relay.Finding{
		judgeClaims(claims, "foreign claims", func(c relay.Claimed) bool { return c.Slot == relay.Slot{} },
			"another kind of exporter, or relays with another RELAY_TRANSACTIONAL_ID",
			"stop those and wait until their leases are over, then settle what they have left with relay ledger"),
		judgeClaims(claims, "lost ledger", func(c relay.Claimed) bool { return c.Fate == relay.LedgerLost },
			"slots of which the ledger has no entry: its topic was deleted, made anew or cut",
			"nobody knows what of them was committed: settle them with relay ledger"),
		judgeClaims(claims, "ledger of other rows", func(c relay.Claimed) bool { return c.Fate == relay.OtherRows },
			"slots of which the ledger's last entry is of other rows",
			"give these rows a RELAY_TRANSACTIONAL_ID of their own, and settle the claims with relay ledger before"),
		judgeClaims(claims, "ledger reading", func(c relay.Claimed) bool { return c.Fate == relay.NotRead },
			"slots of which the ledger could not be read", "see relay ledger list"),
	}
	findings = slices.DeleteFunc(findings, func(f relay.Finding) bool { return f.Level == relay.OK })
	entries := relay.Finding{Check: "ledger entries", Seen: "relays can go on from what the ledger says of all slots"}
	if err := r.Entries(ctx); err != nil {
		entries = relay.Finding{Check: "ledger entries", Level: relay.Fail, Seen: err.Error(), Do: "until then nothing is claimed"}
	}
	if len(findings) == 0 {
		findings = append(findings, relay.Finding{Check: "claims", Seen: relay.Count(len(claims), "claim", "claims") + ", none of which needs a person to decide"})
	}
	return append(findings, entries)
}

// judgeClaims is a fault if there are claims of a kind, with an example.
func judgeClaims(claims []relay.Claimed, check string, kind func(relay.Claimed) bool, whose, do string) relay.Finding {
	n, rows, example := 0, 0, ""
	for _, c := range claims {
		if !kind(c) {
			continue
		}
		if n++; n == 1 {
			example = c.Token
		}
		for _, h := range c.Held {
			rows += len(h.Rows)
		}
	}
	if n == 0 {
		return relay.Finding{Check: check}
	}
	return relay.Finding{
		Check: check, Level: relay.Fail, Do: do,
		Seen: fmt.Sprintf("%s held by %s, such as %q, of %s", relay.Count(rows, "row is", "rows are"), relay.Count(n, "claim", "claims"), example, whose),
	}
}
