package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"outboxrelay/envelope"
)

// insistAtOnce is how many settlements that failed are tried again at once, so that others find a
// connection.
const insistAtOnce = 2

// settle writes verdicts, and has what can't be written tried again in the background: a row that
// was delivered must be marked, not sent again.
func (r *Relay) settle(ctx context.Context, d *delivery, verdicts []Verdict) {
	if err := r.settleOnce(ctx, d, d.claim, verdicts, r.writeTogether); err != nil && ctx.Err() == nil {
		r.release(d)
		claim := d.claim // renewals change it
		d.insisting.Go(func() { r.insist(ctx, d, claim, verdicts, err) })
	}
}

// writer writes verdicts on rows of a claim, and tells of it.
type writer func(context.Context, Claim, []Verdict) ([]Result, error)

// settleOnce tries that once.
func (r *Relay) settleOnce(ctx context.Context, d *delivery, claim Claim, verdicts []Verdict, write writer) error {
	if len(verdicts) == 0 {
		return nil
	}
	d.beat()
	_, err := write(ctx, claim, verdicts)
	if err != nil && ctx.Err() == nil {
		r.failed(claim.Scope, err)
	}
	return err
}

// insist writes verdicts that could not be written, for a reason, and tries again until the store
// takes them or ctx ends. What the store refuses for what it is, is tried in smaller and smaller parts,
// so that a single row does not keep others from being written, and given up for a row alone when
// its claim has long been over.
func (r *Relay) insist(ctx context.Context, d *delivery, claim Claim, verdicts []Verdict, why error) {
	parts, held, written := split(verdicts, why), false, false
	hold := func(wanted bool) {
		switch {
		case wanted && !held:
			r.scheduler.hold(claim.Scope)
		case !wanted && held:
			r.scheduler.letGo(claim.Scope)
		}
		held = wanted
	}
	hold(true)
	defer func() { hold(false) }()
	for n := 1; ; n++ {
		sleep(ctx, r.policy.jitter(growing(firstDatabaseWait, longestDatabaseWait, n)), nil)
		var left [][]Verdict
		alone := true
		for len(parts) > 0 {
			part := parts[0]
			parts = parts[1:]
			err := r.insistOnce(ctx, d, claim, part)
			if ctx.Err() != nil {
				return
			}
			switch refused := ClassOf(err) == RowFault; {
			case err == nil:
				written = true
				hold(false)
			case refused && len(part) > 1:
				parts = append(parts, split(part, err)...)
			case refused && time.Since(claim.Expires) > renewFor:
			default:
				left, alone = append(left, part), alone && refused
			}
		}
		if parts = left; len(parts) == 0 {
			return
		}
		// A few rows hold up nobody but their operations. If nothing at all can be written, more
		// is sent of the scope as seldom as claims run out.
		hold(!written && (!alone || time.Since(d.start) < r.cfg.Lease))
	}
}

// split parts verdicts that were refused: there may be one among them that all others can do without.
func split(verdicts []Verdict, why error) [][]Verdict {
	size := len(verdicts)
	if ClassOf(why) == RowFault {
		size = max(1, size/10)
	}
	return slices.Collect(slices.Chunk(verdicts, size))
}

// insistOnce tries that once, when a few others at most do.
func (r *Relay) insistOnce(ctx context.Context, d *delivery, claim Claim, verdicts []Verdict) error {
	select {
	case r.insisting <- struct{}{}:
		defer func() { <-r.insisting }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return r.settleOnce(ctx, d, claim, verdicts, r.write)
}

// write is a writer.
func (r *Relay) write(ctx context.Context, claim Claim, verdicts []Verdict) ([]Result, error) {
	start := time.Now()
	results, err := r.store.Settle(ctx, claim, verdicts)
	if err != nil {
		return nil, err
	}
	r.written(claim, verdicts, results, time.Since(start))
	return results, nil
}

// written tells of verdicts that were written.
func (r *Relay) written(claim Claim, verdicts []Verdict, results []Result, took time.Duration) {
	r.database.worked()
	r.observer.Settled(claim, verdicts, results, took)
	r.tell(claim, verdicts)
}

// failed tells of a call of the store that failed.
func (r *Relay) failed(scope envelope.Scope, err error) {
	r.database.blame(err)
	r.observer.Trouble(Trouble{Kind: DatabaseTrouble, Scope: scope, Err: err})
}

// tell reports the first of each kind of trouble among verdicts, and how many more there
// are of it.
func (r *Relay) tell(claim Claim, verdicts []Verdict) {
	first, more := map[TroubleKind]Trouble{}, map[TroubleKind]int{}
	for _, v := range verdicts {
		kind := SendTrouble
		switch {
		case v.DeadLettered:
			kind = LetterTrouble
		case v.Wait == Park:
			kind = RowTrouble
		}
		if v.Exported || v.Error == "" {
			continue
		}
		if _, told := first[kind]; told {
			more[kind]++
			continue
		}
		first[kind] = Trouble{Kind: kind, Scope: claim.Scope, Row: v.Row.ID, Err: errors.New(v.Error)}
	}
	for kind, t := range first {
		if n := more[kind]; n > 0 {
			t.Err = fmt.Errorf("%w (and %d more rows)", t.Err, n)
		}
		r.observer.Trouble(t)
	}
}
