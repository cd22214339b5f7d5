package relaytest

import (
	"context"
	"time"

	"github.com/google/uuid"

	"outboxrelay/relay"
)

// Settle implements [relay.Store].
func (s *Store) Settle(ctx context.Context, claim relay.Claim, verdicts []relay.Verdict) ([]relay.Result, error) {
	results, err := s.SettleAll(ctx, []relay.Settlement{{Claim: claim, Verdicts: verdicts}})
	if err != nil {
		return nil, err
	}
	return results[0], nil
}

// SettleAll implements [relay.Store]. A Fault sees it as as many settlements.
func (s *Store) SettleAll(ctx context.Context, all []relay.Settlement) ([][]relay.Result, error) {
	results, calls := make([][]relay.Result, len(all)), make([]Call, len(all))
	for i, one := range all {
		calls[i] = Call{Scope: one.Claim.Scope, Token: one.Claim.Token, Verdicts: one.Verdicts}
	}
	err := s.limited(ctx, all[0].Limit, calls, func() {
		now := s.now() // one instant: what is delayed alike comes due together
		for i, one := range all {
			results[i] = make([]relay.Result, len(one.Verdicts))
			for _, letters := range []bool{false, true} { // what letters free is freed last
				for n, v := range one.Verdicts {
					if v.DeadLettered == letters {
						results[i][n] = s.settle(one.Claim, v, now)
					}
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

func (s *Store) settle(claim relay.Claim, v relay.Verdict, now time.Time) relay.Result {
	r := s.find(v.Row.ID)
	switch {
	case r == nil || r.Scope != claim.Scope:
		return relay.Result{Status: relay.Lost}
	case r.Exported:
		if r.heldUnder(claim.Token) { // somebody's late mark left our claim on it
			r.ClaimedBy, r.Expires = "", time.Time{}
		}
		return relay.Result{Status: relay.Lost}
	case r.heldUnder(claim.Token):
		r.write(v, now)
		if v.DeadLettered {
			s.free(r.Operation, now)
		}
		return relay.Result{Status: relay.Written, Lag: r.lag(now)}
	case v.Exported && r.Operation == v.Row.OperationID && r.Created.Equal(v.Row.CreatedAt):
		r.Exported = true
		return relay.Result{Status: relay.MarkedLate, Lag: r.lag(now)}
	default:
		return relay.Result{Status: relay.Lost}
	}
}

// Renew implements [relay.Store].
func (s *Store) Renew(ctx context.Context, claim relay.Claim, ids []int64, lease time.Duration) (held []int64, err error) {
	err = s.call(ctx, Call{Scope: claim.Scope, Token: claim.Token, Renewed: ids}, func() {
		held = nil
		for _, id := range ids {
			if r := s.find(id); r != nil && r.Scope == claim.Scope && !r.Exported && r.heldUnder(claim.Token) {
				r.ClaimedBy, r.Expires = relay.Unmarked(claim.Token), s.now().Add(lease)
				held = append(held, id)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return held, nil
}

// free makes an operation's rows due that nobody holds and that aren't parked.
func (s *Store) free(operation uuid.UUID, now time.Time) {
	for _, r := range s.rows {
		if r.Operation == operation && !r.Exported && !r.Parked && !r.held(now) {
			r.Due = now
		}
	}
}

// write settles a row that the claim holds.
func (r *Stored) write(v relay.Verdict, now time.Time) {
	r.ClaimedBy, r.Expires = "", time.Time{}
	if v.Exported {
		r.Exported, r.LastError = true, ""
		return
	}
	if v.DeadLettered {
		r.Exported, r.LastError = true, v.Error
		return
	}
	switch v.Wait {
	case relay.KeepDue:
	case relay.Park:
		r.Parked = true
	default:
		r.Due = now.Add(v.Wait)
	}
	if v.Error != "" {
		r.LastError = v.Error
	}
	if v.Refund {
		r.Attempts--
	}
}

// heldUnder is true if the claim of that token is on the row, with or without its marks.
func (r *Stored) heldUnder(token string) bool {
	return r.ClaimedBy != "" && relay.Unmarked(r.ClaimedBy) == relay.Unmarked(token)
}

// lag is how long ago an exported row was written, 0 for others.
func (r *Stored) lag(now time.Time) time.Duration {
	if !r.Exported {
		return 0
	}
	return now.Sub(r.Created)
}
