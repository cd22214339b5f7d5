package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

// claimant is a relay that is not to be relied on: it stalls, dies, fails and answers
// late. It keeps the two rules that order takes: rows of an operation go out in the
// order of their ids, and none behind one that did not.
type claimant struct {
	*world
	rng *rand.Rand
}

func (w *world) claimant(ctx context.Context, rng *rand.Rand) {
	c := claimant{w, rng}
	scopes := append([]envelope.Scope{w.mixed}, w.ours...)
	for ctx.Err() == nil {
		req := c.request(scopes[rng.IntN(len(scopes))])
		claim, err := w.Claim(ctx, req)
		if err == nil {
			err = c.check(req, claim)
		}
		w.fail(ctx, "claim", err)
		if err != nil || len(claim.Rows) == 0 {
			pause(ctx, rng, 10*time.Millisecond)
			continue
		}
		w.fail(ctx, "settle", c.work(ctx, claim))
	}
}

func (c claimant) request(scope envelope.Scope) relay.Request {
	req := request(scope)
	req.Lease = 50*time.Millisecond + upTo(c.rng, 200*time.Millisecond)
	req.Rows, req.Abandoned = 1+c.rng.IntN(40), c.rng.IntN(2) == 0
	req.Bytes = []int64{1, 1000, 4 << 20, 4 << 20, 4 << 20}[c.rng.IntN(5)]
	return req
}

// happens is true with a chance of one in n, as long as things may go wrong.
func (c claimant) happens(n int) bool { return !c.calm.Load() && c.rng.IntN(n) == 0 }

// check holds a claim against what was asked for.
func (c claimant) check(req relay.Request, claim relay.Claim) error {
	c.claims.Add(1)
	c.rows.Add(int64(len(claim.Rows)))
	if len(claim.Rows) > req.Rows {
		return fmt.Errorf("claimed %d rows, want %d at most", len(claim.Rows), req.Rows)
	}
	var bytes, last int64
	for _, row := range claim.Rows {
		bytes += row.Bytes
		if row.ID <= last {
			return fmt.Errorf("row %d comes after row %d", row.ID, last)
		}
		last = row.ID
	}
	if len(claim.Rows) > 1 && bytes > req.Bytes {
		return fmt.Errorf("claimed %d bytes, want %d at most", bytes, req.Bytes)
	}
	if claim.Scope == c.mixed {
		return nil
	}
	return c.hold.take(claim)
}

// work takes a claim to its end, or leaves it.
func (c claimant) work(ctx context.Context, claim relay.Claim) error {
	if c.happens(15) {
		return nil // dead
	}
	if c.happens(20) {
		c.stall(ctx, claim)
	}
	verdicts, err := c.deliver(claim)
	if err != nil || c.happens(15) {
		return err // or dead again, with everything sent
	}
	if c.happens(20) {
		c.stall(ctx, claim)
	}
	c.rng.Shuffle(len(verdicts), func(i, j int) { verdicts[i], verdicts[j] = verdicts[j], verdicts[i] })
	c.hold.leave(claim, verdicts)
	results, err := c.Settle(ctx, claim, verdicts)
	for _, result := range results {
		switch result.Status {
		case relay.Lost:
			c.lost.Add(1)
		case relay.MarkedLate:
			c.late.Add(1)
		case relay.Written:
		}
	}
	return err
}

// stall waits until the lease is over, and a little more.
func (c claimant) stall(ctx context.Context, claim relay.Claim) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Until(claim.Expires) + upTo(c.rng, 100*time.Millisecond)):
	}
}

// deliver sends a claim's rows and judges them, as a relay's policy does.
func (c claimant) deliver(claim relay.Claim) ([]relay.Verdict, error) {
	var verdicts []relay.Verdict
	var errs []error
	behind := map[uuid.UUID]time.Duration{}
	for i := range claim.Rows {
		row := &claim.Rows[i]
		wait, blocked := behind[row.OperationID]
		switch fate := c.rng.IntN(100); {
		case blocked:
			verdicts = append(verdicts, relay.Verdict{Row: row, Wait: wait, Refund: true})
		case c.calm.Load() || fate < 90:
			errs = append(errs, c.send(claim.Scope, row))
			verdicts = append(verdicts, relay.Verdict{Row: row, Exported: true})
		case fate < 94:
			behind[row.OperationID] = upTo(c.rng, 100*time.Millisecond)
			verdicts = append(verdicts, relay.Verdict{Row: row, Wait: behind[row.OperationID], Error: "no broker"})
		case fate < 96:
			behind[row.OperationID] = 24 * time.Hour
			verdicts = append(verdicts, relay.Verdict{Row: row, Wait: relay.Park, Error: "too large"})
		case fate < 98:
			behind[row.OperationID] = relay.KeepDue
			verdicts = append(verdicts, relay.Verdict{Row: row, Wait: relay.KeepDue, Refund: true})
		default: // sent, and no answer came
			behind[row.OperationID] = relay.KeepDue
			errs = append(errs, c.send(claim.Scope, row))
		}
	}
	return verdicts, errors.Join(errs...)
}

func (c claimant) send(scope envelope.Scope, row *relay.Row) error {
	if scope == c.mixed {
		_ = c.any.add(row)
		return nil
	}
	return c.log.add(row)
}
