package relaytest

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

func dueOfSeveral(c *storeCase) {
	scopes := []envelope.Scope{
		tenant(c.T, "nothing"), envelope.NonTenant(), tenant(c.T, "claimed"), tenant(c.T, "later"), tenant(c.T, "parked"),
		tenant(c.T, "exported"), tenant(c.T, "left"), tenant(c.T, "claimed and more"),
	}
	due := func() []time.Duration {
		c.Helper()
		due, err := c.outbox.Due(c.Context(), scopes)
		if err != nil || len(due) != len(scopes) {
			c.Fatalf("due: %v, %v", due, err)
		}
		return due
	}
	for i, scope := range scopes[1:] {
		c.scope = scope
		c.operation(1)
		if i == 0 {
			continue
		}
		claim := c.claimed(1)
		switch id, _ := scope.Tenant(); id {
		case "later":
			c.settle(claim, relay.Written, relay.Verdict{Wait: time.Hour, Error: "slow down"})
		case "parked":
			c.settle(claim, relay.Written, relay.Verdict{Wait: relay.Park, Error: "bad"})
		case "exported":
			c.settle(claim, relay.Written, relay.Verdict{Exported: true})
		case "left":
			c.outbox.Pass(lease + time.Second)
			// The claims made so far have ended too, so they are made again.
			c.scope = scopes[2]
			c.claimed(0)
			c.abandoned(1)
		case "claimed and more":
			c.operation(1)
		}
	}
	const never = relay.Never
	for i, want := range []time.Duration{never, 0, never, time.Hour, never, never, 0, 0} {
		got := due()[i]
		if want == time.Hour && got > want-lease-slack && got <= want || want != time.Hour && max(got, 0) == want {
			continue
		}
		c.Errorf("%s: first row due in %s, want %s", scopes[i], got, want)
	}
	c.outbox.Add("another namespace", scopes[0], uuid.New(), 1) // whose it is doesn't matter
	if got := due()[0]; got > 0 {
		c.Errorf("a row of another namespace is due in %s, want now", got)
	}
}

func dueEnded(c *storeCase) {
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	if due, err := c.outbox.Due(ctx, []envelope.Scope{c.scope, c.scope}); !errors.Is(err, context.Canceled) {
		c.Errorf("under an ended context: %v, %v", due, err)
	}
}
