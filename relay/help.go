package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// help decides claims that ran out, until ctx ends: those of other slots here, those of own
// ones are left to their workers. It also looks whether anything may be claimed.
func (r *Relay) help(ctx context.Context, workers []*slotWorker) {
	for sleep(ctx, r.policy.jitter(r.cfg.Lease/3), nil) {
		if err := r.helpOnce(ctx, workers); err != nil && ctx.Err() == nil {
			r.observer.Trouble(Trouble{Kind: SlotTrouble, Err: err})
		}
	}
}

func (r *Relay) helpOnce(ctx context.Context, workers []*slotWorker) error {
	if err := r.mayClaim(ctx); forbids(err) {
		for _, w := range workers {
			w.stale.Store(true)
		}
		return err
	}
	held, err := r.held(ctx, r.scheduler.everServed())
	if err != nil {
		return err
	}
	left := map[Slot][]Held{}
	for _, h := range held {
		slot, ok := slotOfToken(r.cfg.ExactlyOnce.Prefix, h.Token)
		own := slices.IndexFunc(workers, func(w *slotWorker) bool { return w.slot == slot })
		switch {
		case !h.Expired || !ok:
		case own >= 0:
			workers[own].stale.Store(true)
		default:
			left[slot] = append(left[slot], h)
		}
	}
	var failed []error
	for slot, listed := range left {
		if err := r.helpSlot(ctx, slot, listed); err != nil {
			failed = append(failed, fmt.Errorf("help slot %s: %w", slot.ID, err))
		}
	}
	return errors.Join(failed...)
}

func (r *Relay) helpSlot(ctx context.Context, slot Slot, listed []Held) error {
	if err := r.cfg.ExactlyOnce.Sink.Fence(ctx, slot); err != nil {
		return err
	}
	r.observer.Fenced(slot, FencedOther)
	entry, ok, err := r.cfg.ExactlyOnce.Sink.Last(ctx, slot)
	if err != nil {
		return err
	}
	if !ok {
		return errLedgerLost
	}
	return r.decide(ctx, entry, listed, nil)
}
