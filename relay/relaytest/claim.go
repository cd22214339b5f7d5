package relaytest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

// recheck is when a row behind a parked one is looked at again.
const recheck = 24 * time.Hour

// Claim implements [relay.Store].
func (s *Store) Claim(ctx context.Context, req relay.Request) (relay.Claim, error) {
	claim := relay.Claim{Scope: req.Scope, Token: req.Token, Expires: time.Now().Add(req.Lease)}
	err := s.call(ctx, Call{Scope: req.Scope, Token: req.Token, Rows: req.Rows}, func() { s.claim(req, &claim) })
	if err != nil {
		if req.Abandoned {
			s.Edit(func(r *Stored) { // the mark would come after the answer
				if r.ClaimedBy == claim.Token {
					r.ClaimedBy = strings.TrimSuffix(r.ClaimedBy, "!")
				}
			})
		}
		return relay.Claim{}, err
	}
	return claim, nil
}

// ClaimAll implements [relay.Store]. A Fault sees it as as many claims.
func (s *Store) ClaimAll(ctx context.Context, reqs []relay.Request) ([]relay.Claim, error) {
	claims, calls := make([]relay.Claim, len(reqs)), make([]Call, len(reqs))
	for i, req := range reqs {
		calls[i] = Call{Scope: req.Scope, Token: req.Token, Rows: req.Rows}
	}
	err := s.limited(ctx, reqs[0].Limit, calls, func() {
		for i, req := range reqs {
			claims[i] = relay.Claim{Scope: req.Scope, Token: req.Token, Exact: req.Exact, Expires: time.Now().Add(req.Lease)}
			s.claim(req, &claims[i])
		}
	})
	if err != nil {
		return nil, err
	}
	return claims, nil
}

func (s *Store) claim(req relay.Request, claim *relay.Claim) {
	now := s.now()
	pending := s.unexported()
	due := s.dueRows(req, now)
	claim.Seen = len(due)
	var ready, abandoned []*Stored
	for _, r := range due {
		switch rows := pending[r.Operation]; {
		case r.Namespace != req.Namespace || rows[0].held(now):
		case !stale(rows, r):
			ready = append(ready, r)
		case r == rows[0]:
			abandoned = append(abandoned, r)
		}
	}
	if req.Abandoned {
		s.claimAbandoned(req, claim, abandoned, pending, now)
		return
	}
	claim.Abandoned = len(abandoned) > 0
	most := min(len(ready), req.Rows)
	fits := within(ready[:most], req.Bytes)
	for _, rows := range pending {
		claimed, pushed := judge(rows, fits, now)
		for _, r := range claimed {
			claim.Rows = append(claim.Rows, r.claim(req, now))
		}
		for r, until := range pushed {
			r.Due = until
		}
		claim.Pushed += len(pushed)
	}
	slices.SortFunc(claim.Rows, func(a, b relay.Row) int { return cmp.Compare(a.ID, b.ID) })
	claim.More = most == req.Rows || claim.Pushed > 0 || slices.ContainsFunc(ready[:most], func(r *Stored) bool { return !fits[r] })
}

// stale is true if a claim that ran out has left the row or an earlier one of its
// operation behind.
func stale(rows []*Stored, r *Stored) bool {
	for _, other := range rows {
		if !other.Expires.IsZero() {
			return true
		}
		if other == r {
			return false
		}
	}
	return false
}

// claimAbandoned takes rows that were left behind under as many marks as the first one.
func (s *Store) claimAbandoned(req relay.Request, claim *relay.Claim, heads []*Stored, pending map[uuid.UUID][]*Stored, now time.Time) {
	all := len(heads)
	if req.Wary {
		heads = slices.DeleteFunc(heads, func(r *Stored) bool { return relay.Marks(r.ClaimedBy) >= relay.AloneFrom })
	}
	claim.Abandoned = all > 0
	if len(heads) == 0 {
		return
	}
	former := relay.Marks(heads[0].ClaimedBy)
	most := 1
	switch former {
	case 0:
		most = req.Rows
	case 1:
		most = min(req.Rows, 10)
	}
	req.Token += strings.Repeat("!", 1+min(former, relay.MostMarks))
	claim.Token = req.Token
	var due []*Stored
	for _, head := range heads {
		for _, r := range pending[head.Operation] {
			if r.Expires.IsZero() || r.held(now) || !r.due(now) || relay.Marks(r.ClaimedBy) != former {
				break
			}
			due = append(due, r)
		}
	}
	taken := map[uuid.UUID]bool{}
	due = due[:min(len(due), most)]
	fits := within(due, req.Bytes)
	for _, r := range due {
		if !fits[r] {
			break
		}
		row := r.claim(req, now)
		if former >= relay.MostMarks {
			row.Payload = nil // reading it may be what ends the owner
		}
		claim.Rows = append(claim.Rows, row)
		taken[r.Operation] = true
	}
	slices.SortFunc(claim.Rows, func(a, b relay.Row) int { return cmp.Compare(a.ID, b.ID) })
	claim.Abandoned = len(taken) < all
}

// dueRows are the rows that a claim looks at, those due longest first.
func (s *Store) dueRows(req relay.Request, now time.Time) []*Stored {
	var due []*Stored
	for _, r := range s.rows {
		if r.Scope == req.Scope && !r.Exported && r.due(now) && !r.held(now) {
			due = append(due, r)
		}
	}
	slices.SortStableFunc(due, func(a, b *Stored) int { return a.Due.Compare(b.Due) })
	return due
}

// within tells of each row that a claim looks at whether it fits the byte budget. One
// always does.
func within(due []*Stored, budget int64) map[*Stored]bool {
	fits := make(map[*Stored]bool, len(due))
	for i, r := range due {
		budget -= int64(len(r.Payload))
		fits[r] = budget >= 0 || i == 0
	}
	return fits
}

// judge takes, of one operation's unexported rows, the unbroken run that fits from the
// first one on. What a claim saw behind a later due time is moved there.
func judge(rows []*Stored, fits map[*Stored]bool, now time.Time) (claimed []*Stored, pushed map[*Stored]time.Time) {
	pushed = map[*Stored]time.Time{}
	latest := rows[0] // the one that comes due last, so far
	for i, r := range rows {
		fit, seen := fits[r]
		switch {
		case seen && fit && len(claimed) == i:
			claimed = append(claimed, r)
		case seen && latest.later(r):
			pushed[r] = now.Add(recheck)
			if !latest.Parked && latest.Due.Before(pushed[r]) {
				pushed[r] = latest.Due
			}
		}
		if r.later(latest) {
			latest = r
		}
	}
	return claimed, pushed
}

// later is true if the row comes due after another one.
func (r *Stored) later(than *Stored) bool {
	return !than.Parked && (r.Parked || r.Due.After(than.Due))
}

// claim puts a claim on the row and gives it as the claim holds it.
func (r *Stored) claim(req relay.Request, now time.Time) relay.Row {
	expired := r.ClaimedBy
	r.ClaimedBy, r.Expires = req.Token, now.Add(req.Lease)
	r.Attempts++
	return relay.Row{
		ID: r.ID, OperationID: r.Operation, CreatedAt: r.Created, Type: r.Type,
		Payload: slices.Clone(r.Payload), Bytes: int64(len(r.Payload)), Attempts: r.Attempts, Expired: expired,
	}
}

// Due implements [relay.Store].
func (s *Store) Due(ctx context.Context, scopes []envelope.Scope) ([]time.Duration, error) {
	due := make([]time.Duration, len(scopes))
	err := s.call(ctx, Call{Looked: scopes}, func() {
		now := s.now()
		earliest := map[envelope.Scope]time.Duration{}
		for _, r := range s.rows {
			if r.Exported || r.Parked || r.Expires.After(now) {
				continue
			}
			if was, ok := earliest[r.Scope]; !ok || r.Due.Sub(now) < was {
				earliest[r.Scope] = r.Due.Sub(now)
			}
		}
		for i, scope := range scopes {
			var ok bool
			if due[i], ok = earliest[scope]; !ok {
				due[i] = relay.Never
			}
		}
	})
	return due, err
}
