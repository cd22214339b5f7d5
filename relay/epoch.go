package relay

import (
	"context"
	"fmt"
	"slices"
	"time"

	"outboxrelay/envelope"
)

const (
	firstEpoch = 250 * time.Millisecond // waits after a slot could not be taken, or was fenced again
	lastEpoch  = 10 * time.Second
	// rarely is how seldom a slot is fenced by others when nothing is wrong: they do that to who
	// has stood still.
	rarely = time.Minute
)

// ready takes the slot, if it isn't held, and is true if it is held then.
func (w *slotWorker) ready(ctx context.Context) bool {
	if w.stale.Swap(false) {
		w.drop()
		w.doubts = nil
	}
	if w.session != nil {
		return true
	}
	if w.fenced > 1 && !sleep(ctx, w.policy.jitter(growing(firstEpoch, lastEpoch, w.fenced-1)), nil) {
		return false
	}
	w.pulse.busy(w.number)
	err := w.take(ctx)
	w.slots.set(w.number, err)
	if err == nil {
		w.fails = 0
		w.observer.Fenced(w.slot, FencedOwn)
		return true
	}
	w.drop()
	w.pulse.idle(w.number)
	if ctx.Err() != nil {
		return false
	}
	w.fails++
	w.trouble(err)
	sleep(ctx, w.policy.jitter(growing(firstEpoch, lastEpoch, w.fails)), nil)
	return false
}

func (w *slotWorker) trouble(err error) {
	w.observer.Trouble(Trouble{Kind: SlotTrouble, Err: fmt.Errorf("slot %s: %w", w.slot.ID, err)})
}

// suffered notes that somebody else has fenced the slot.
func (w *slotWorker) suffered(err error) {
	if time.Since(w.lastFenced) > rarely {
		w.fenced = 0
	}
	w.fenced, w.lastFenced = w.fenced+1, time.Now()
	w.observer.Fenced(w.slot, FencedByOther)
	if w.fenced > 1 {
		w.trouble(fmt.Errorf("it was fenced %d times in a row: if another relay has the same RELAY_INSTANCE, give it another: %w", w.fenced, err))
	}
}

// drop gives the slot up. It is the answer to every outcome that is not a clean success: the
// ledger decides what became of it.
func (w *slotWorker) drop() {
	if w.session != nil {
		w.session.Close()
		w.session = nil
	}
}

// take takes the slot and decides all claims of it that are not decided. The order of its
// steps is what makes that safe; see docs/exactly-once.md.
func (w *slotWorker) take(ctx context.Context) (err error) {
	if err := w.mayClaim(ctx); err != nil {
		return err
	}
	listed, err := w.list(ctx)
	if err != nil {
		return err
	}
	if w.session, err = w.cfg.ExactlyOnce.Sink.Open(ctx, w.slot); err != nil {
		return err
	}
	entry, ok, err := w.cfg.ExactlyOnce.Sink.Last(ctx, w.slot)
	switch {
	case err != nil:
		return err
	case !ok:
		listed = nil
		if entry, err = w.begin(ctx); err != nil {
			return err
		}
	}
	if err := w.decide(ctx, entry, listed, w.verdicts); err != nil {
		return err
	}
	w.mine, w.verdicts, w.doubts = nil, nil, []envelope.Scope{}
	return nil
}

// begin makes the entry that the slot's ledger begins with. That there was none means that nothing
// was committed that is not decided, if the table holds no claims of the slot; else that the
// ledger was lost.
func (w *slotWorker) begin(ctx context.Context) (entry Entry, err error) {
	w.mine, w.doubts = nil, nil
	switch listed, err := w.list(ctx); {
	case err != nil:
		return entry, err
	case len(listed) > 0:
		return entry, errLedgerLost
	}
	source, err := w.source(ctx)
	if err != nil {
		return entry, err
	}
	entry = Entry{Token: w.slot.first(), Source: source}
	if _, err := w.session.Commit(ctx, entry, nil, nil); err != nil {
		return entry, fmt.Errorf("begin the ledger: %w", err)
	}
	return entry, nil
}

// list gives the claims of the slot that are not decided, as far as is known.
func (w *slotWorker) list(ctx context.Context) ([]Held, error) {
	listed := slices.Clone(w.mine)
	scopes := w.doubts
	if scopes == nil {
		scopes = w.scheduler.everServed()
	}
	held, err := w.held(ctx, scopes)
	if err != nil {
		return nil, err
	}
	for _, h := range held {
		if slot, ok := slotOfToken(w.cfg.ExactlyOnce.Prefix, h.Token); ok && slot == w.slot {
			listed = append(listed, h)
		}
	}
	return listed, nil
}
