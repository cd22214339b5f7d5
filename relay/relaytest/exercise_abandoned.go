package relaytest

import (
	"strings"
	"time"

	"outboxrelay/relay"
)

func abandonedApart(c *storeCase) {
	for range 2 {
		c.operation(2)
	}
	c.claimed(4)
	c.outbox.Pass(lease + time.Second)
	c.operation(1)
	if claim := c.claimed(1); !claim.Abandoned || claim.Rows[0].Expired != "" {
		c.Errorf("claim holds %v, abandoned %t; want the new row, and the others told of", claim.Rows, claim.Abandoned)
	}
	claim := c.abandoned(4)
	c.abandoned(0)
	c.settle(claim, relay.Written, relay.Verdict{Exported: true}, relay.Verdict{Exported: true},
		relay.Verdict{Exported: true}, relay.Verdict{Wait: relay.KeepDue})
	if claim := c.claimed(1); claim.Abandoned { // what was given back is a row like others
		c.Error("a claim tells of abandoned rows where none are left")
	}
}

// Rows that were left behind again are claimed with fewer others, and never with rows
// that were left behind less or more often.
func abandonedFewer(c *storeCase) {
	for range 12 {
		c.operation(1)
	}
	c.claimed(12)
	c.outbox.Pass(lease + time.Second)
	c.claimed(0)
	c.abandoned(12)
	c.operation(1)
	c.claimed(1)
	c.outbox.Pass(lease + time.Second)
	c.claimed(0)
	claims := []relay.Claim{c.abandoned(10), c.abandoned(2), c.abandoned(1)}
	for i, want := range []string{"!!", "!!", "!"} {
		if got := claims[i].Token; strings.TrimRight(got, "!")+want != got {
			c.Errorf("claim %d is under %q, want the marks %s", i, got, want)
		}
	}
	c.outbox.Pass(lease + time.Second)
	c.claimed(0)
	c.abandoned(1)
	c.abandoned(1)
}

// abandonedWary: who asks for none that would be alone is given the others, and told that some are left.
func abandonedWary(c *storeCase) {
	c.operation(1)
	c.claimed(1)
	for range relay.AloneFrom {
		c.outbox.Pass(lease + time.Second)
		c.claimed(0)
		c.abandoned(1)
	}
	c.operation(1)
	c.claimed(1)
	c.outbox.Pass(lease + time.Second)
	c.claimed(0)
	req := c.request()
	req.Abandoned, req.Wary = true, true
	for _, want := range []int64{c.row(1).ID, 0} {
		claim, err := c.outbox.Claim(c.Context(), req)
		switch {
		case err != nil:
			c.Fatalf("claim of abandoned rows: %v", err)
		case want == 0 && len(claim.Rows) == 0 && claim.Abandoned:
		case len(claim.Rows) != 1 || claim.Rows[0].ID != want || !claim.Abandoned:
			c.Errorf("claim holds %v, more abandoned %t; want row %d, and that some are left", claim.Rows, claim.Abandoned, want)
		}
	}
	c.abandoned(1)
}

func abandonedAgain(c *storeCase) {
	c.operation(1)
	former := c.claimed(1).Token
	for n := 1; n <= relay.MostMarks+2; n++ {
		c.outbox.Pass(lease + time.Second)
		c.claimed(0)
		claim := c.abandoned(1)
		want := strings.Repeat("!", min(n, relay.MostMarks+1))
		if got := claim.Token; strings.TrimRight(got, "!")+want != got || claim.Rows[0].Expired != former {
			c.Errorf("claim is under %q, taken from %q; want the marks %s, from %q", got, claim.Rows[0].Expired, want, former)
		}
		if row := claim.Rows[0]; (row.Payload == nil) != (n > relay.MostMarks) || row.Bytes == 0 {
			c.Errorf("with %d marks the payload is %q, want none only with more than %d", n, row.Payload, relay.MostMarks)
		}
		former = claim.Token
	}
	c.settle(relay.Claim{Scope: c.scope, Token: former, Rows: []relay.Row{{ID: c.row(0).ID}}}, relay.Written, relay.Verdict{Wait: relay.KeepDue})
	c.claimed(1) // given back, it is a row like others
}
