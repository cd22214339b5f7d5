package relaytest

import (
	"strings"
	"time"

	"outboxrelay/relay"
)

func settleExported(c *storeCase) {
	c.operation(1)
	c.settle(c.claimed(1), relay.Written, relay.Verdict{Error: "refused"}) // due at once
	before := c.row(0)
	results := c.settle(c.claimed(1), relay.Written, relay.Verdict{Exported: true, Wait: relay.Park, Error: "not to be written", Refund: true})
	if lag := results[0].Lag; lag < 0 || lag > slack {
		c.Errorf("lag is %s, want the time since the row was made", lag)
	}
	got := c.row(0)
	c.free(got)
	if !got.Exported || got.LastError != "" || got.Attempts != 2 || got.Parked || !got.Due.Equal(before.Due) {
		c.Errorf("row is %v, want it exported after 2 attempts, without error, due as before", got)
	}
	c.claimed(0)
}

func settleDelayed(c *storeCase) {
	c.operation(2)
	c.settle(c.claimed(2), relay.Written,
		relay.Verdict{Wait: time.Minute, Error: "refused"}, relay.Verdict{Wait: time.Minute, Refund: true})
	head, behind := c.row(0), c.row(1)
	c.free(head)
	c.dueIn(head, time.Minute)
	if head.Attempts != 1 || head.LastError != "refused" || head.Exported {
		c.Errorf("row is %v, want it delayed after 1 attempt, with the error", head)
	}
	c.free(behind)
	if behind.Attempts != 0 || behind.LastError != "" || !behind.Due.Equal(head.Due) {
		c.Errorf("the row behind is %v, want it due together with the first, at no attempt, without error", behind)
	}
	c.claimed(0)
	c.outbox.Pass(time.Minute + time.Second)
	c.settle(c.claimed(2), relay.Written, relay.Verdict{Wait: time.Hour}) // no error: the old one stays
	if got := c.row(0); got.LastError != "refused" || got.Attempts != 2 {
		c.Errorf("row is %v, want the former error and 2 attempts", got)
	}
}

func settleGivenBack(c *storeCase) {
	c.operation(1)
	before := c.row(0)
	c.settle(c.claimed(1), relay.Written, relay.Verdict{Wait: relay.KeepDue, Refund: true})
	got := c.row(0)
	c.free(got)
	if got.Attempts != 0 || got.LastError != "" || !got.Due.Equal(before.Due) {
		c.Errorf("row is %v, want it as before the claim: %v", got, before)
	}
	c.claimed(1)
}

func settleParked(c *storeCase) {
	c.operation(1)
	c.settle(c.claimed(1), relay.Written, relay.Verdict{Wait: relay.Park, Error: "bad"})
	got := c.row(0)
	c.free(got)
	if !got.Parked || got.Attempts != 1 || got.LastError != "bad" {
		c.Errorf("row is %v, want it parked after 1 attempt, with the error", got)
	}
	c.outbox.Pass(1000 * time.Hour)
	if claim := c.claimed(0); claim.Seen != 0 {
		c.Errorf("a claim saw the parked row")
	}
}

func settleMixed(c *storeCase) {
	for range 4 {
		c.operation(1)
	}
	claim := c.claimed(4)
	c.settle(claim, relay.Written, relay.Verdict{Exported: true}, relay.Verdict{Wait: relay.Park, Error: "bad"},
		relay.Verdict{Exported: true}) // none for the last
	for i, exported := range []bool{true, false, true, false} {
		if got := c.row(i); got.Exported != exported {
			c.Errorf("row %d: exported is %t, want %t", i, got.Exported, exported)
		}
	}
	if got := c.row(3); got.ClaimedBy != claim.Token || got.Attempts != 1 {
		c.Errorf("the row without a verdict is %v, want it claimed as before", got)
	}
	c.settle(claim, relay.Lost, relay.Verdict{Exported: true}, relay.Verdict{Wait: time.Hour})
	if _, err := c.outbox.Settle(c.Context(), claim, []relay.Verdict{{Row: &claim.Rows[3], Exported: true}}); err != nil {
		c.Fatalf("settle: %v", err)
	}
	if got := c.row(3); !got.Exported {
		c.Errorf("row 3 is %v, want it exported", got)
	}
}

// settleAgain: an answer was lost, and the same verdicts come again.
func settleAgain(c *storeCase) {
	c.operation(1)
	c.operation(2)
	claim := c.claimed(3)
	verdicts := []relay.Verdict{{Exported: true}, {Wait: time.Minute, Error: "refused"}, {Wait: time.Minute, Refund: true}}
	c.settle(claim, relay.Written, verdicts...)
	before := c.outbox.Rows(c.scope)
	c.settle(claim, relay.Lost, verdicts...)
	for i, got := range c.outbox.Rows(c.scope) {
		if want := before[i]; got.Exported != want.Exported || got.Attempts != want.Attempts ||
			got.LastError != want.LastError || !got.Due.Equal(want.Due) || got.ClaimedBy != "" {
			c.Errorf("row %d is %v after the second time, want %v", i, got, want)
		}
	}
}

func settleLongText(c *storeCase) {
	c.operation(1)
	text := strings.Repeat("\U0001F600", 2000) // 2,000 characters, 8,000 bytes
	c.settle(c.claimed(1), relay.Written, relay.Verdict{Wait: time.Minute, Error: text})
	if got := c.row(0).LastError; got != text {
		c.Errorf("last error has %d bytes, want %d", len(got), len(text))
	}
}

func settleExpired(c *storeCase) {
	c.operation(1)
	claim := c.claimed(1)
	c.outbox.Pass(lease + time.Second)
	c.settle(claim, relay.Written, relay.Verdict{Wait: time.Minute, Error: "refused"})
	if got := c.row(0); got.LastError != "refused" || got.ClaimedBy != "" {
		c.Errorf("row is %v, want the verdict written, since nobody took it over", got)
	}
}

func settleLostFailure(c *storeCase) {
	c.operation(1)
	c.operation(1)
	old := c.claimed(2)
	c.outbox.Pass(lease + time.Second)
	c.claimed(0)
	owner := c.abandoned(2)
	before := c.outbox.Rows(c.scope)
	c.settle(old, relay.Lost, relay.Verdict{Wait: relay.Park, Error: "late"}, relay.Verdict{Wait: relay.KeepDue, Refund: true})
	for i, got := range c.outbox.Rows(c.scope) {
		if got.ClaimedBy != owner.Token || !got.Expires.Equal(before[i].Expires) || got.Attempts != 2 || got.LastError != "" || got.Parked {
			c.Errorf("row %d is %v, want the new owner's untouched: %v", i, got, before[i])
		}
	}
	c.settle(owner, relay.Written, relay.Verdict{Exported: true}, relay.Verdict{Exported: true})
}

func settleLostSuccess(c *storeCase) {
	c.operation(1)
	old := c.claimed(1)
	c.outbox.Pass(lease + time.Second)
	c.claimed(0)
	owner := c.abandoned(1)
	before := c.row(0)
	results := c.settle(old, relay.MarkedLate, relay.Verdict{Exported: true})
	if lag := results[0].Lag; lag < 0 {
		c.Errorf("lag is %s, want the time since the row was made", lag)
	}
	got := c.row(0)
	if !got.Exported || got.ClaimedBy != owner.Token || !got.Expires.Equal(before.Expires) || got.Attempts != 2 {
		c.Errorf("row is %v, want it exported and the new owner's claim untouched: %v", got, before)
	}
	// The new owner finds it done, and takes its claim off.
	c.settle(owner, relay.Lost, relay.Verdict{Wait: time.Minute, Error: "late"})
	got = c.row(0)
	c.free(got)
	if !got.Exported || got.LastError != "" {
		c.Errorf("row is %v, want it exported without error", got)
	}
}

func settleExportedByOther(c *storeCase) {
	c.operation(1)
	old := c.claimed(1)
	c.outbox.Pass(lease + time.Second)
	c.claimed(0)
	c.settle(c.abandoned(1), relay.Written, relay.Verdict{Exported: true})
	c.settle(old, relay.Lost, relay.Verdict{Exported: true})
	c.free(c.row(0))
}

func settleDeadLettered(c *storeCase) {
	operation := c.operation(3)
	c.operation(1)
	claim := c.claimed(4)
	c.settle(claim, relay.Written, relay.Verdict{DeadLettered: true, Wait: relay.KeepDue, Error: "dead-lettered: bad"},
		relay.Verdict{Wait: time.Hour, Refund: true}, relay.Verdict{Wait: relay.KeepDue, Refund: true}) // the other operation's stays claimed
	got := c.row(0)
	c.free(got)
	if !got.Exported || got.LastError != "dead-lettered: bad" || got.Attempts != 1 || got.Parked {
		c.Errorf("row is %v, want it exported with the reason", got)
	}
	if claim := c.claimed(2); claim.Rows[0].OperationID != operation {
		c.Errorf("claimed rows of %s, want the rest of the operation at once", claim.Rows[0].OperationID)
	}
	if got := c.row(3); got.ClaimedBy != claim.Token || got.Exported {
		c.Errorf("row is %v, want another operation's left alone", got)
	}
}

func settleLostLetter(c *storeCase) {
	c.operation(1)
	old := c.claimed(1)
	c.outbox.Pass(lease + time.Second)
	c.claimed(0)
	owner := c.abandoned(1)
	c.settle(old, relay.Lost, relay.Verdict{DeadLettered: true, Error: "dead-lettered: bad"})
	if got := c.row(0); got.Exported || got.ClaimedBy != owner.Token || got.LastError != "" {
		c.Errorf("row is %v, want the new owner's untouched", got)
	}
}
