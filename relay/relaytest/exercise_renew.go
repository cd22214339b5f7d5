package relaytest

import (
	"slices"
	"time"

	"outboxrelay/relay"
)

// renewed renews rows of a claim, and checks which of them it still held.
func (c *storeCase) renewed(claim relay.Claim, ids []int64, want ...int64) {
	c.Helper()
	held, err := c.outbox.Renew(c.Context(), claim, ids, lease)
	if err != nil {
		c.Fatalf("renew: %v", err)
	}
	slices.Sort(held)
	if !slices.Equal(held, want) {
		c.Errorf("the claim still held %d, want %d", held, want)
	}
}

func renewLease(c *storeCase) {
	c.operation(1)
	c.operation(1)
	claim := c.claimed(2)
	first, second := claim.Rows[0].ID, claim.Rows[1].ID
	c.outbox.Pass(lease - slack)
	c.renewed(claim, []int64{first}, first)
	before := c.row(0)
	if left := before.Expires.Sub(c.outbox.Now()); left < lease-slack || left > lease+slack {
		c.Errorf("%s of the lease is left, want %s", left, lease)
	}
	if before.Attempts != 1 || before.ClaimedBy != claim.Token {
		c.Errorf("row is %v, want nothing but its lease changed", before)
	}
	c.outbox.Pass(slack + time.Second)
	c.claimed(0)
	if other := c.abandoned(1); other.Rows[0].ID != second {
		c.Errorf("row %d is free, want %d, which was not renewed", other.Rows[0].ID, second)
	}
	c.outbox.Pass(lease)
	c.renewed(claim, []int64{first}, first) // over, but nobody took it
	c.settle(claim, relay.Written, relay.Verdict{Exported: true})
}

func renewLost(c *storeCase) {
	c.operation(1)
	c.operation(1)
	c.operation(1)
	claim := c.claimed(3)
	exported, taken, kept := claim.Rows[0].ID, claim.Rows[1].ID, claim.Rows[2].ID
	c.settle(claim, relay.Written, relay.Verdict{Exported: true})
	c.outbox.Seize(taken, "other", lease)
	before := c.row(1)
	c.renewed(claim, []int64{exported, taken, kept, 1 << 40}, kept)
	if got := c.row(1); got.String() != before.String() {
		c.Errorf("the new owner's row is %v, want it left alone: %v", got, before)
	}
	if got := c.row(0); !got.Expires.IsZero() {
		c.Errorf("the exported row is %v, want no claim on it", got)
	}
}
