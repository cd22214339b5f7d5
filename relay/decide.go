package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"outboxrelay/envelope"
)

// undecidable is an error that says why it takes a person to tell what has become of a slot's claims.
type undecidable string

func (e undecidable) Error() string { return string(e) }

const errLedgerLost = undecidable("the ledger has no entry of it although there are claims by it: the ledger topic was deleted, made " +
	"anew or cut, and nobody knows what of them was committed; see relay ledger")

// decide settles claims of a slot that were listed before it was fenced: what its last entry
// names was committed, and the others were not. Verdicts, if there are any, say what is to be
// written of the latters' rows.
//
// Whatever the entry names is marked, also if it was not listed, and nothing is released that
// was not.
func (r *Relay) decide(ctx context.Context, entry Entry, listed []Held, verdicts map[int64]Verdict) error {
	if err := r.accept(ctx, &entry); err != nil {
		return err
	}
	var failed []error // others' rows don't wait for those that the database refuses
	for scope, ids := range entry.Rows {
		claim, verdicts := claimOf(Held{Scope: scope, Token: entry.Token, Rows: ids}, func(row *Row) Verdict {
			if why, ok := entry.Letters[row.ID]; ok {
				return deadLettered(Verdict{Row: row, Error: why})
			}
			return Verdict{Row: row, Exported: true}
		})
		if err := r.conclude(ctx, claim, verdicts); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", scope, err))
			if ClassOf(err) != RowFault {
				break
			}
		}
	}
	if failed != nil {
		return errors.Join(failed...)
	}
	for _, held := range listed {
		if held.Token == entry.Token {
			continue
		}
		claim, verdicts := claimOf(held, func(row *Row) Verdict {
			if v, ok := verdicts[row.ID]; ok {
				v.Row = row
				return v
			}
			return Verdict{Row: row, Wait: KeepDue}
		})
		if err := r.conclude(ctx, claim, verdicts); err != nil {
			return err
		}
	}
	return nil
}

// claimOf makes of what a claim holds a claim to be settled, with verdicts.
func claimOf(held Held, verdict func(*Row) Verdict) (Claim, []Verdict) {
	claim := Claim{Scope: held.Scope, Token: held.Token, Exact: true, Rows: make([]Row, len(held.Rows))}
	verdicts := make([]Verdict, len(held.Rows))
	for i, id := range held.Rows {
		claim.Rows[i].ID = id
		verdicts[i] = verdict(&claim.Rows[i])
	}
	return claim, verdicts
}

// conclude writes what has been decided, as far as nobody did before.
func (r *Relay) conclude(ctx context.Context, claim Claim, verdicts []Verdict) error {
	start := time.Now()
	results, err := r.store.Settle(ctx, claim, verdicts)
	if err != nil {
		return err
	}
	r.database.worked()
	var done []Verdict
	var written []Result
	for i, result := range results {
		if result.Status == Written {
			done, written = append(done, verdicts[i]), append(written, result)
		}
	}
	if len(done) > 0 {
		r.observer.Settled(claim, done, written, time.Since(start))
		r.observer.Recovered(claim, done)
	}
	return nil
}

// accept is nil if an entry is of the rows that are relayed here. What it names of scopes that
// never were served here must have been settled; it takes that out.
func (r *Relay) accept(ctx context.Context, entry *Entry) error {
	source, err := r.source(ctx)
	if err != nil {
		return err
	}
	if entry.Source != source {
		return undecidable(fmt.Sprintf("the ledger's last entry is of other rows, in %s, and these are in %s: "+
			"give each set of rows a RELAY_TRANSACTIONAL_ID of its own", entry.Source, source))
	}
	known := r.scheduler.everServed()
	rows := map[envelope.Scope][]int64{}
	for scope, ids := range entry.Rows {
		if slices.Contains(known, scope) {
			rows[scope] = ids
			continue
		}
		held, err := r.held(ctx, []envelope.Scope{scope})
		if err != nil {
			return err
		}
		if slices.ContainsFunc(held, func(h Held) bool { return h.Token == entry.Token }) {
			return undecidable(fmt.Sprintf("a claim that was committed holds rows of %s, which is not configured here: "+
				"configure it until they are marked, or give other relays another RELAY_TRANSACTIONAL_ID", scope))
		}
	}
	entry.Rows = rows
	return nil
}

// source names the rows that are relayed here.
func (r *Relay) source(ctx context.Context) (string, error) {
	r.identityMu.Lock()
	defer r.identityMu.Unlock()
	if r.identity == "" {
		identity, err := r.cfg.ExactlyOnce.Store.Identity(ctx)
		if err != nil {
			return "", err
		}
		r.identity = identity + "/" + r.cfg.Namespace
	}
	return r.identity, nil
}

// heldAtOnce is how many scopes are looked at in one round trip.
const heldAtOnce = 1000

// held tells which claims hold rows of some scopes, and takes note of those that are not the
// relays' of this mode.
func (r *Relay) held(ctx context.Context, scopes []envelope.Scope) (all []Held, err error) {
	for some := range slices.Chunk(scopes, heldAtOnce) {
		held, err := r.cfg.ExactlyOnce.Store.Held(ctx, some)
		if err != nil {
			return nil, err
		}
		r.keepFromStrangers(some, held)
		all = append(all, held...)
	}
	return all, nil
}
