package relaytest

import (
	"context"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

// several makes claims of several scopes at once under one token, and checks how many rows each holds.
func (c *storeCase) several(scopes []envelope.Scope, want ...int) []relay.Claim {
	c.Helper()
	token := c.request().Token
	reqs := make([]relay.Request, len(scopes))
	for i, scope := range scopes {
		reqs[i] = c.request()
		reqs[i].Scope, reqs[i].Token, reqs[i].Exact, reqs[i].Rows = scope, token, true, 2
	}
	claims, err := c.outbox.ClaimAll(c.Context(), reqs)
	if err != nil {
		c.Fatalf("claims of several scopes: %v", err)
	}
	for i, claim := range claims {
		if claim.Scope != scopes[i] || claim.Token != token || !claim.Exact || len(claim.Rows) != want[i] {
			c.Errorf("claim %d is of %d rows of %s under %q, exact %t, want %d of %s under %q", i, len(claim.Rows), claim.Scope, claim.Token,
				claim.Exact, want[i], scopes[i], token)
		}
		held := 0
		for _, row := range c.outbox.Rows(scopes[i]) {
			if row.ClaimedBy == token {
				held++
			}
		}
		if held != want[i] {
			c.Errorf("%d rows of %s are claimed, want %d", held, scopes[i], want[i])
		}
	}
	return claims
}

func severalScopes(c *storeCase) {
	scopes := []envelope.Scope{tenant(c.T, "acme"), tenant(c.T, "empty"), envelope.NonTenant(), tenant(c.T, "globex")}
	for i, n := range []int{1, 0, 2, 3} {
		for range n {
			c.outbox.Add(namespace, scopes[i], uuid.New(), 1)
		}
	}
	claims := c.several(scopes, 1, 0, 2, 2)
	if claims[0].More || claims[1].More || !claims[3].More {
		c.Error("only the last claim left something")
	}
	var all []relay.Settlement
	for _, claim := range claims {
		s := relay.Settlement{Claim: claim}
		for i := range claim.Rows {
			s.Verdicts = append(s.Verdicts, relay.Verdict{Row: &claim.Rows[i], Exported: i == 0, Wait: relay.KeepDue})
		}
		if len(s.Verdicts) > 0 {
			all = append(all, s)
		}
	}
	results, err := c.outbox.SettleAll(c.Context(), all)
	if err != nil {
		c.Fatalf("settlements of several claims: %v", err)
	}
	for i, one := range all {
		for n, result := range results[i] {
			if result.Status != relay.Written {
				c.Errorf("row %d of %s: status %d, want it written", one.Verdicts[n].Row.ID, one.Claim.Scope, result.Status)
			}
		}
	}
	c.several(scopes, 0, 0, 1, 2)
}

func severalEnded(c *storeCase) {
	c.operation(1)
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	if _, err := c.outbox.ClaimAll(ctx, []relay.Request{c.request()}); err == nil {
		c.Error("claims under an ended context, want an error")
	}
	c.several([]envelope.Scope{c.scope}, 1)
}
