package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Fate is what is known of the events of a claim.
type Fate string

const (
	// InFlight: its lease runs, so whoever made it may still decide.
	InFlight Fate = "in flight"
	// Committed: its events are in Kafka. Whoever takes its slot marks them.
	Committed Fate = "committed"
	// NotCommitted: its events are not in Kafka, unless its owner lives and commits them now.
	// Whoever takes its slot releases them.
	NotCommitted Fate = "not committed"
	// LedgerLost: the ledger has no entry of its slot, so nobody can know.
	LedgerLost Fate = "nobody knows: the ledger has no entry"
	// OtherRows: the ledger tells of another database, or of another place in this one.
	OtherRows Fate = "nobody knows: the ledger is of other rows"
	// Stranger: another kind of exporter made it, or relays with another prefix.
	Stranger Fate = "nobody knows: another exporter's"
	// NotRead: the ledger could not be read now.
	NotRead Fate = "the ledger could not be read"
)

// Claimed is a claim that holds rows of some scopes, and what is known of it.
type Claimed struct {
	Token string
	Slot  Slot   // zero if it is a stranger's
	Held  []Held // one for each scope
	Fate  Fate
	Err   error // why the ledger could not be read
}

// Expired is true if the lease of all of its rows is over.
func (c Claimed) Expired() bool {
	return !slices.ContainsFunc(c.Held, func(h Held) bool { return !h.Expired })
}

// Claims tells of the claims that hold rows of the relay's scopes in exactly-once mode. It changes
// nothing.
func (r *Relay) Claims(ctx context.Context) (all []Claimed, err error) {
	held, err := r.held(ctx, r.scheduler.everServed())
	if err != nil {
		return nil, err
	}
	index := map[string]int{}
	for _, h := range held {
		i, ok := index[h.Token]
		if !ok {
			i = len(all)
			index[h.Token] = i
			all = append(all, Claimed{Token: h.Token})
		}
		all[i].Held = append(all[i].Held, h)
	}
	slices.SortFunc(all, func(a, b Claimed) int { return strings.Compare(a.Token, b.Token) })
	for i := range all {
		c := &all[i]
		slot, ours := slotOfToken(r.cfg.ExactlyOnce.Prefix, c.Token)
		if ours {
			c.Slot = slot
		}
		switch {
		case !c.Expired():
			c.Fate = InFlight
		case !ours:
			c.Fate = Stranger
		default:
			c.Fate, c.Err = r.fate(ctx, c.Slot, c.Token)
		}
	}
	return all, nil
}

// fate is what the ledger says of a claim now.
func (r *Relay) fate(ctx context.Context, slot Slot, token string) (Fate, error) {
	entry, ok, err := r.cfg.ExactlyOnce.Sink.Last(ctx, slot)
	if err != nil {
		return NotRead, err
	}
	if !ok {
		return LedgerLost, nil
	}
	source, err := r.source(ctx)
	switch {
	case err != nil:
		return NotRead, err
	case entry.Source != source:
		return OtherRows, nil
	case entry.Token == token:
		return Committed, nil
	}
	return NotCommitted, nil
}

// Conclude settles a claim by the word of a person, where nobody can know what was committed: its
// rows are marked exported, which may lose their events, or released, which may send them twice.
// Where it is known, or may still be decided by who made it, that is an error.
func (r *Relay) Conclude(ctx context.Context, claim Claimed, exported bool) error {
	if claim.Slot == (Slot{}) {
		if !claim.Expired() {
			return errors.New("its lease runs: stop the exporter that made it, and wait until it is over")
		}
	} else if err := r.undecidable(ctx, claim); err != nil {
		return err
	}
	for _, held := range claim.Held {
		settled, verdicts := claimOf(held, func(row *Row) Verdict {
			if exported {
				return Verdict{Row: row, Exported: true}
			}
			return Verdict{Row: row, Wait: KeepDue}
		})
		if err := r.conclude(ctx, settled, verdicts); err != nil {
			return err
		}
	}
	return nil
}

// undecidable fences a claim's slot, so that its maker can decide nothing any more, and is nil if
// nobody can know then what was committed.
func (r *Relay) undecidable(ctx context.Context, claim Claimed) error {
	if err := r.cfg.ExactlyOnce.Sink.Fence(ctx, claim.Slot); err != nil {
		return err
	}
	switch fate, err := r.fate(ctx, claim.Slot, claim.Token); fate {
	case LedgerLost, OtherRows:
		return nil
	case NotRead:
		return err
	default:
		return fmt.Errorf("the ledger says that it was %s: a relay that runs settles it so", fate)
	}
}
