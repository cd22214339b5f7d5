package relaytest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

func nothingToClaim(c *storeCase) {
	claim := c.claimed(0)
	if claim.Seen != 0 || claim.Pushed != 0 || claim.More {
		c.Errorf("claim of nothing saw %d, pushed %d, more %t", claim.Seen, claim.Pushed, claim.More)
	}
}

func whatAClaimHolds(c *storeCase) {
	operation := c.operation(3)
	before := time.Now()
	claim := c.claimed(3)
	if d := claim.Expires.Sub(before); d < lease || d > lease+slack {
		c.Errorf("the lease is taken to end %s after the call, want %s", d, lease)
	}
	for i, row := range claim.Rows {
		stored := c.row(i)
		if row.ID != stored.ID || row.OperationID != operation || row.Type != "aksara.operation.transition" ||
			!row.CreatedAt.Equal(stored.Created) || row.Attempts != 1 || row.Expired != "" {
			c.Errorf("row %d of the claim is %+v, want what is stored, at its first attempt", i, row)
		}
		var payload struct {
			StateVersion int `json:"state_version"`
		}
		if err := json.Unmarshal(row.Payload, &payload); err != nil || payload.StateVersion != i+1 {
			c.Errorf("payload of row %d is %s (%v), want one of state version %d", i, row.Payload, err, i+1)
		}
		if row.Bytes != int64(len(row.Payload)) {
			c.Errorf("row %d has %d bytes, want the %d of its payload", i, row.Bytes, len(row.Payload))
		}
		if left := stored.Expires.Sub(c.outbox.Now()); stored.ClaimedBy != claim.Token || stored.Attempts != 1 ||
			left < lease-slack || left > lease+slack {
			c.Errorf("row %d is stored with %d attempts, claimed by %q for %s, want the claim's", i, stored.Attempts, stored.ClaimedBy, left)
		}
	}
}

func rowLimit(c *storeCase) {
	for range 5 {
		c.operation(1)
	}
	limit := func(r *relay.Request) { r.Rows = 2 }
	for _, want := range []int{2, 2, 1, 0} {
		if claim := c.claimed(want, limit); want == 2 && !claim.More {
			c.Error("a full claim says that there is no more")
		}
	}
}

func byteBudget(c *storeCase) {
	for range 4 {
		c.operation(1)
	}
	budget := func(bytes int64) func(*relay.Request) { return func(r *relay.Request) { r.Bytes = bytes } }
	first := c.claimed(1, budget(1)) // one row always fits
	if claim := c.claimed(2, budget(3*first.Rows[0].Bytes-1)); !claim.More {
		c.Error("a claim that left a row for want of room says that there is no more")
	}
	c.claimed(1, budget(1<<20))
}

func scopesAreApart(c *storeCase) {
	foreign := []envelope.Scope{tenant(c.T, "ACME"), tenant(c.T, "acme "), tenant(c.T, "%"), envelope.NonTenant()}
	for _, scope := range foreign {
		c.outbox.Add(namespace, scope, uuid.New(), 1)
	}
	for _, other := range []string{"Orders", "order", "%"} {
		c.outbox.Add(other, c.scope, uuid.New(), 1)
	}
	c.claimed(0)
	c.operation(1)
	claim := c.claimed(1)
	c.settle(claim, relay.Written, relay.Verdict{Exported: true})
	for _, scope := range foreign {
		c.claimed(1, func(r *relay.Request) { r.Scope = scope })
	}
	c.claimed(1, func(r *relay.Request) { r.Namespace = "Orders" })
	c.claimed(0)
}

func endedContext(c *storeCase) {
	c.operation(1)
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	if claim, err := c.outbox.Claim(ctx, c.request()); err == nil {
		c.Errorf("claim of %d rows under an ended context, want an error", len(claim.Rows))
	}
	c.outbox.Pass(lease + time.Second) // the rows are free, or come back when the lease ends
	claim := c.claimed(1)
	verdicts := []relay.Verdict{{Row: &claim.Rows[0], Exported: true}}
	if _, err := c.outbox.Settle(ctx, claim, verdicts); err == nil {
		c.Error("settlement under an ended context, want an error")
	}
	c.settle(claim, relay.Written, verdicts...)
}

func leaseKeepsOthersOut(c *storeCase) {
	c.operation(2)
	first := c.claimed(2)
	c.outbox.Pass(lease - slack)
	c.claimed(0)
	c.outbox.Pass(slack + time.Second)
	if claim := c.claimed(0); !claim.Abandoned {
		c.Error("a claim does not tell of rows that a former one left behind")
	}
	row := c.abandoned(2).Rows[0]
	if row.ID != first.Rows[0].ID || row.Attempts != 2 || row.Expired != first.Token {
		c.Errorf("row %d is at attempt %d, taken from %q; want %d, at 2, from %q", row.ID, row.Attempts, row.Expired, first.Rows[0].ID, first.Token)
	}
}

func leaseOfAnotherExporter(c *storeCase) {
	c.operation(3)
	// The Python exporter takes rows without regard to earlier ones of their operation.
	c.outbox.Seize(c.row(0).ID, "python-worker", time.Minute)
	c.claimed(0)
	c.outbox.Pass(time.Minute + time.Second)
	c.claimed(0)
	claim := c.abandoned(1)
	if by := claim.Rows[0].Expired; by != "python-worker" {
		c.Errorf("the first row was taken from %q, want python-worker", by)
	}
	c.settle(claim, relay.Written, relay.Verdict{Exported: true})
	if by := c.claimed(2).Rows[0].Expired; by != "" {
		c.Errorf("the second row was taken from %q, want nobody", by)
	}
}

func operationInFlight(c *storeCase) {
	c.operation(5)
	claim := c.claimed(2, func(r *relay.Request) { r.Rows = 2 })
	c.claimed(0)
	c.operation(1) // others are not held up
	c.claimed(1)
	c.settle(claim, relay.Written, relay.Verdict{Exported: true}, relay.Verdict{Exported: true})
	if next := c.claimed(3); next.Rows[0].ID != c.row(2).ID {
		c.Errorf("the next claim begins with row %d, want %d", next.Rows[0].ID, c.row(2).ID)
	}
}

func behindADelayedRow(c *storeCase) {
	operation := c.operation(1)
	c.settle(c.claimed(1), relay.Written, relay.Verdict{Wait: time.Minute, Error: "refused"})
	c.outbox.Add(namespace, c.scope, operation, 2)

	claim := c.claimed(0)
	if claim.Seen != 2 || claim.Pushed != 2 || !claim.More {
		c.Errorf("claim saw %d, pushed %d, more %t; want both rows behind pushed", claim.Seen, claim.Pushed, claim.More)
	}
	if claim = c.claimed(0); claim.Seen != 0 {
		c.Errorf("the next claim saw %d rows again, want none", claim.Seen)
	}
	c.dueIn(c.row(1), time.Minute)
	c.dueIn(c.row(2), time.Minute)
	if got := c.row(2); got.Attempts != 0 || got.ClaimedBy != "" {
		c.Errorf("the pushed row is %+v, want it unclaimed", got)
	}
	c.outbox.Pass(time.Minute + time.Second)
	c.claimed(3)
}

func behindAParkedRow(c *storeCase) {
	operation := c.operation(1)
	c.settle(c.claimed(1), relay.Written, relay.Verdict{Wait: relay.Park, Error: "bad"})
	c.outbox.Add(namespace, c.scope, operation, 1)
	if claim := c.claimed(0); claim.Pushed != 1 {
		c.Errorf("claim pushed %d rows, want the one behind", claim.Pushed)
	}
	c.dueIn(c.row(1), recheck)
	c.outbox.Pass(recheck + time.Second)
	if claim := c.claimed(0); claim.Seen != 1 || claim.Pushed != 1 {
		c.Errorf("a day later the claim saw %d rows and pushed %d, want 1 and 1", claim.Seen, claim.Pushed)
	}
}

func interleavedOperations(c *storeCase) {
	a, b := uuid.New(), uuid.New()
	for range 3 {
		c.outbox.Add(namespace, c.scope, a, 1)
		c.outbox.Add(namespace, c.scope, b, 1)
	}
	claim := c.claimed(3, func(r *relay.Request) { r.Rows = 3 })
	var of []uuid.UUID
	for _, row := range claim.Rows {
		of = append(of, row.OperationID)
	}
	if !slices.Equal(of, []uuid.UUID{a, b, a}) {
		c.Errorf("claim holds rows of %v, want the first three of %s and %s", of, a, b)
	}
	c.claimed(0)
}

func concurrentClaims(c *storeCase) {
	const operations, versions, claimers = 20, 5, 4
	for range operations {
		c.operation(versions)
	}
	var mu sync.Mutex
	exported := map[uuid.UUID][]int64{}
	var all sync.WaitGroup
	for range claimers {
		all.Go(func() {
			for c.Context().Err() == nil && !c.Failed() && !c.drained() {
				claim, err := c.outbox.Claim(c.Context(), limited(c.request(), 7))
				if err != nil {
					c.Errorf("claim: %v", err)
					return
				}
				mu.Lock()
				for _, row := range claim.Rows {
					exported[row.OperationID] = append(exported[row.OperationID], row.ID)
				}
				mu.Unlock()
				if err := c.export(claim); err != nil {
					c.Errorf("settle: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	if len(exported) != operations {
		c.Errorf("%d operations were exported, want %d", len(exported), operations)
	}
	for operation, ids := range exported {
		if len(ids) != versions || !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != versions {
			c.Errorf("rows of operation %s were claimed as %v, want each once and in order", operation, ids)
		}
	}
}

func limited(r relay.Request, rows int) relay.Request {
	r.Rows = rows
	return r
}

// drained is true when every row of the scope is exported.
func (c *storeCase) drained() bool {
	return !slices.ContainsFunc(c.outbox.Rows(c.scope), func(r Stored) bool { return !r.Exported })
}

func (c *storeCase) export(claim relay.Claim) error {
	var verdicts []relay.Verdict
	for i := range claim.Rows {
		verdicts = append(verdicts, relay.Verdict{Row: &claim.Rows[i], Exported: true})
	}
	if len(verdicts) == 0 {
		return nil
	}
	_, err := c.outbox.Settle(c.Context(), claim, verdicts)
	return err
}
