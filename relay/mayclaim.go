package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// mayClaim is nil if the servers are fit for anything to be claimed by any slot. It is asked before a slot is taken, so that nobody
// is fenced in vain, and now and then while slots are held; see [forbids].
func (r *Relay) mayClaim(ctx context.Context) error {
	if err := r.cfg.ExactlyOnce.Store.Durable(ctx); err != nil {
		return err
	}
	if err := r.Entries(ctx); forbids(err) {
		return fmt.Errorf("nothing is claimed by any slot: %w", err)
	}
	return nil // also if a partition can't be read just now: each slot looks at its own entry when it is taken
}

// forbids is true for an answer of mayClaim by which slots that are held must be given up; false if nothing could be learned.
func forbids(err error) bool { return errors.Is(err, ErrForgetful) || errors.As(err, new(undecidable)) }

// Entries is nil if relays can go on from what the ledger says of all slots, of other instances too. One entry of other rows
// means that two sets of rows have one prefix, by mistake. It changes nothing.
func (r *Relay) Entries(ctx context.Context) error {
	entries, err := r.cfg.ExactlyOnce.Sink.Entries(ctx, r.cfg.ExactlyOnce.Prefix)
	if err != nil {
		return err
	}
	slots := slices.SortedFunc(maps.Keys(entries), func(a, b Slot) int { return cmp.Compare(a.Partition, b.Partition) })
	for _, slot := range slots {
		entry := entries[slot]
		if int(slot.Partition)/SlotsPerInstance != r.cfg.ExactlyOnce.Instance {
			entry.Rows = nil // other instances may serve other scopes, and mark their rows by themselves
		}
		if err := r.accept(ctx, &entry); err != nil {
			return fmt.Errorf("slot %s: %w", slot.ID, err)
		}
	}
	return nil
}
