package relay

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"outboxrelay/envelope"
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

// claim claims what is due, of several scopes if they have little, all with one token. After an error
// nobody knows what is claimed.
func (w *slotWorker) claim(ctx context.Context, first *turn) (claims []Claim, err error) {
	token := w.slot.newToken()
	turns := w.scheduler.mix(first, min(mostMixed, w.cfg.BatchRows))
	all, err := w.takeTurns(ctx, turns, Request{Token: token, Exact: true})
	if err != nil {
		for _, t := range turns {
			w.doubts = append(w.doubts, t.scope)
		}
		return nil, err
	}
	for _, claim := range all {
		if len(claim.Rows) == 0 {
			continue
		}
		held := Held{Scope: claim.Scope, Token: token}
		for i := range claim.Rows {
			held.Rows = append(held.Rows, claim.Rows[i].ID)
		}
		w.mine = append(w.mine, held)
		claims = append(claims, claim)
	}
	return claims, nil
}

// deliver sends the events of claims that share a token in one transaction, and marks them.
func (w *slotWorker) deliver(ctx context.Context, claims []Claim) {
	if len(claims) == 0 {
		return
	}
	start := time.Now()
	sending, ok := w.prepare(ctx, claims)
	if !ok {
		for _, c := range claims { // it may be with one of them
			w.scheduler.unsettled(c.Scope)
		}
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
	}
	if !w.mark(ctx, sending) {
		w.drop() // whoever takes the slot marks the rest
		return
	}
	for _, c := range claims {
		w.scheduler.settled(c.Scope)
	}
	w.mine = nil
}

// mark writes that a transaction was committed; false if that could not be written of all of it.
func (w *slotWorker) mark(ctx context.Context, sent transaction) bool {
	if len(sent) > 1 {
		switch err := w.markTogether(ctx, sent); ClassOf(err) {
		case Delivered:
			return true
		case RowFault: // it may be with one of the scopes
		default:
			w.database.failed(err)
			w.observer.Trouble(Trouble{Kind: DatabaseTrouble, Err: err})
			return false
		}
	}
	all := true
	for _, s := range sent {
		w.pulse.busy(w.number)
		err := w.settleHeld(ctx, s.claim, s.committed(w.policy))
		if err == nil {
			continue
		}
		w.failed(s.claim.Scope, err)
		if all = false; ClassOf(err) != RowFault {
			break
		}
	}
	return all
}

// markTogether marks all in one transaction.
func (w *slotWorker) markTogether(ctx context.Context, sent transaction) error {
	all := make([]Settlement, len(sent))
	for i, s := range sent {
		all[i] = Settlement{Claim: s.claim, Verdicts: s.committed(w.policy)}
	}
	start := time.Now()
	results, err := w.store.SettleAll(ctx, all)
	if err != nil {
		return err
	}
	for i, s := range all {
		w.written(s.Claim, s.Verdicts, results[i], time.Since(start))
	}
	return nil
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
