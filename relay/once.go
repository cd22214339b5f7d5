package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"outboxrelay/envelope"
)

// Outcome is how one [Relay.ExportOnce] ended.
type Outcome uint8

const (
	// Empty: no event of the scope could be claimed.
	Empty Outcome = iota
	// Exported: the event was delivered and this claim marked its row.
	Exported
	// SinkFailed: the event was not delivered, or no answer came in time.
	SinkFailed
	// ClaimLost: the event was delivered, but the row was no longer this claim's. It
	// was or will be delivered again by the new owner.
	ClaimLost
)

// String is the outcome as the once command prints it.
func (o Outcome) String() string {
	return [...]string{"empty", "exported", "sink_failed", "claim_lost"}[o]
}

// ExportOnce claims one event of the scope, sends it and writes down what came of it:
// Aksara's export_once, with the reasons for its False told apart. With [SinkFailed]
// the error says why the event was not delivered. Otherwise an error is the
// database's, or ctx's if that ended first; a row may then stay claimed until its
// lease ends, and is then sent again.
//
// It may be called at the same time as itself and as [Relay.Run], also for one scope.
func (r *Relay) ExportOnce(ctx context.Context, scope envelope.Scope) (Outcome, error) {
	if err := r.sink.Ready(scope); err != nil {
		return SinkFailed, fmt.Errorf("sink is not ready: %w", err)
	}
	claim, err := r.claimOne(ctx, scope)
	if err != nil || len(claim.Rows) == 0 {
		return Empty, err
	}
	defer r.observer.Released(claim)
	sending, giveUp := context.WithCancel(ctx)
	defer giveUp()
	a := r.publish(sending, claim, func(send func()) { go send() })
	if all := r.wait(ctx, a, survival); !all && Marks(claim.Token) > 0 {
		// Whatever becomes of it, it did not end this process; also if ctx has ended.
		if err := r.unmark(context.WithoutCancel(ctx), claim); err != nil {
			return Empty, fmt.Errorf("renew claim: %w", err)
		}
	}
	r.wait(ctx, a, time.Until(claim.Expires))
	if ctx.Err() != nil && ClassOf(a.snapshot()[0]) == Unknown {
		return Empty, fmt.Errorf("send event: %w", context.Cause(ctx))
	}

	answer := a.snapshot()
	verdicts := r.policy.verdicts(claim.Rows, answer, nil)
	if len(verdicts) == 0 {
		return SinkFailed, errors.New("no answer came from the sink; the row comes back when its lease ends")
	}
	if _, faulty := splitFaulty(verdicts); len(faulty) > 0 && r.cfg.DeadLetters != nil {
		if verdicts = r.bury(ctx, r.letters(claim, faulty), faulty); len(verdicts) == 0 {
			_ = r.unmark(context.WithoutCancel(ctx), claim) // if it fails, one mark is left
			return SinkFailed, errors.New("no answer came to the event's dead letter; the row comes back when its lease ends")
		}
	}
	// Also if ctx has ended: the store bounds the call, and a delivered row must be marked.
	results, err := r.store.Settle(context.WithoutCancel(ctx), claim, verdicts)
	if err != nil {
		return Empty, fmt.Errorf("settle: %w", err)
	}
	r.observer.Settled(claim, verdicts, results, 0)
	switch {
	case ClassOf(answer[0]) != Delivered:
		return SinkFailed, answer[0]
	case results[0].Status == Written:
		return Exported, nil
	default:
		return ClaimLost, nil
	}
}

// claimOne claims one row. It looks on while a claim took none of those that it saw but
// did not see all.
func (r *Relay) claimOne(ctx context.Context, scope envelope.Scope) (Claim, error) {
	for {
		claim, err := r.makeClaim(ctx, Request{Scope: scope, Rows: 1})
		if err != nil {
			return Claim{}, fmt.Errorf("claim: %w", err)
		}
		if len(claim.Rows) == 0 && !claim.More && claim.Abandoned {
			return r.makeClaim(ctx, Request{Scope: scope, Rows: 1, Abandoned: true})
		}
		if len(claim.Rows) > 0 || !claim.More {
			return claim, nil
		}
		if ctx.Err() != nil {
			return Claim{}, context.Cause(ctx)
		}
	}
}
