package relay

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"outboxrelay/envelope"
)

const (
	// A transaction takes claims of several scopes, so that many small ones cost little, but
	// only what is due at once, for so long, and of so many.
	mixFor    = 100 * time.Millisecond
	mostMixed = 200
)

// slotWorker delivers what it claims in transactions of its slot, one after the other.
type slotWorker struct {
	*Relay
	number  int
	slot    Slot
	session Session     // nil: the slot must be taken before anything is claimed
	fails   int         // in a row
	pause   letterPause // of dead letters

	fenced     int // by others, in a row
	lastFenced time.Time

	// What may be claimed by tokens of the slot and is not decided: what is known of it, and
	// the scopes in which there may be more. Nil for all of them.
	mine   []Held
	doubts []envelope.Scope
	// verdicts on rows of mine, should they turn out not to be committed.
	verdicts map[int64]Verdict

	stale atomic.Bool // the slot must be taken anew: a claim of it ran out, or nothing may be claimed
}

// work relays through the slot until ctx ends.
func (w *slotWorker) work(ctx, inFlight context.Context) {
	defer w.drop()
	for ctx.Err() == nil {
		w.pulse.idle(w.number)
		if !w.ready(ctx) {
			continue
		}
		next, ok := w.scheduler.next(ctx)
		if !ok {
			return
		}
		if w.stale.Load() { // since it began to wait
			w.giveBack(next.turns)
			continue
		}
		leave, ok := w.database.enter(ctx)
		if !ok {
			w.giveBack(next.turns)
			return
		}
		w.pulse.busy(w.number)
		if next.look {
			w.look(ctx, next.turns)
			leave()
			continue
		}
		claims, err := w.claim(inFlight, next.turns[0])
		leave()
		if err == nil {
			w.deliver(inFlight, claims)
		} else {
			w.drop()
		}
		for _, c := range claims {
			w.observer.Released(c)
		}
	}
}

// slotWorkers makes one for each slot of this relay.
func (r *Relay) slotWorkers() []*slotWorker {
	workers := make([]*slotWorker, r.cfg.Workers)
	for i := range workers {
		workers[i] = &slotWorker{Relay: r, number: i, slot: SlotOf(r.cfg.ExactlyOnce.Prefix, r.cfg.ExactlyOnce.Instance, i)}
	}
	return workers
}

// claim claims what is due, of several scopes if there is little of each, all with one token.
// After an error nobody knows what is claimed.
func (w *slotWorker) claim(ctx context.Context, first *turn) (claims []Claim, err error) {
	token, begin := w.slot.newToken(), time.Now()
	rows, bytes := 0, int64(0)
	for t, n := first, 1; t != nil; n++ {
		alone := w.scheduler.troubled(t)
		claim, err := w.takeTurn(ctx, t, Request{Token: token, Exact: true})
		if err != nil {
			w.doubts = append(w.doubts, t.scope)
			return claims, err
		}
		if len(claim.Rows) > 0 {
			held := Held{Scope: claim.Scope, Token: token}
			for i := range claim.Rows {
				held.Rows = append(held.Rows, claim.Rows[i].ID)
				bytes += claim.Rows[i].Bytes
			}
			rows += len(claim.Rows)
			w.mine = append(w.mine, held)
			claims = append(claims, claim)
		}
		if t = nil; !alone && rows < w.cfg.BatchRows && bytes < w.cfg.BatchBytes && n < mostMixed && time.Since(begin) < mixFor {
			t = w.scheduler.also()
		}
	}
	return claims, nil
}

// deliver sends the events of claims that share a token in one transaction, and marks them.
func (w *slotWorker) deliver(ctx context.Context, claims []Claim) {
	if len(claims) == 0 {
		return
	}
	start := time.Now()
	sending, err := w.prepare(ctx, claims)
	if err != nil {
		w.failed(claims[0].Scope, err)
		w.drop()
		return
	}
	answers, err := sending.send(ctx, w)
	for _, c := range claims {
		w.observer.Published(c, time.Since(start))
	}
	if err != nil {
		w.drop()
		if errors.Is(err, ErrFenced) {
			w.suffered(err)
		}
		w.blame(sending, answers, err, start)
		return
	}
	for _, s := range sending {
		if len(s.events) > 0 {
			w.scheduler.delivered(s.claim.Scope, true, start, w.policy.jitter)
		} else {
			w.scheduler.undecided(s.claim.Scope)
		}
		if len(s.letters) > 0 {
			w.pause.open()
		}
		if err := w.settleHeld(ctx, s.claim, s.committed(w.policy)); err != nil {
			w.failed(s.claim.Scope, err)
			w.drop() // whoever takes the slot marks the rest
			return
		}
	}
	w.mine = nil
}

// settleHeld writes verdicts on rows that must still be held by the claim, unless what they say was
// committed: that a helper may have written.
func (w *slotWorker) settleHeld(ctx context.Context, claim Claim, verdicts []Verdict) error {
	results, err := w.write(ctx, claim, verdicts)
	for i, result := range results {
		if v := verdicts[i]; result.Status == Lost && !v.Exported && !v.DeadLettered {
			return errTakenOver
		}
	}
	return err
}

var errTakenOver = errors.New("the claim was taken over by another relay")
