// What is done together for several scopes that have little: claims, and the marks of what was delivered. Its price is mostly that
// of a transaction. What is slow or fails for one of them is done apart.

package relay

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	"outboxrelay/envelope"
)

const (
	// mostMixed is how many scopes are claimed of, or claims settled, in one transaction at most. A claim then
	// gets such a share of a batch.
	mostMixed = 16

	// longQueue is how long a settlement waits for others that are being written.
	longQueue = 100 * time.Millisecond

	// What takes longer than mixedLimit for one scope is done apart from others, and for slowFor after something of it took long.
	mixedLimit = 500 * time.Millisecond
	slowFor    = 10 * time.Second
)

// mix takes out those turns that are to be claimed of with a first one in one transaction, which costs less than one for each:
// scopes that have little, so many at most. It gives the first alone if that has much, or trouble.
func (s *scheduler) mix(first *turn, most int) []*turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	turns := []*turn{first}
	for first.light() && len(turns) < most {
		for s.queue.Len() > 0 && s.queue[0].removed {
			heap.Pop(&s.queue)
		}
		if s.queue.Len() == 0 || time.Until(s.queue[0].due) > 0 || !s.queue[0].light() || s.closed(s.queue[0]) > 0 {
			break
		}
		turns = append(turns, heap.Pop(&s.queue).(*turn))
	}
	return turns
}

// light is true if a small claim of the scope is likely to go well and to take all there is, and its events to get through.
func (t *turn) light() bool {
	return !t.much && t.most == 0 && t.refused == 0 && t.unsettled == 0 && t.topic.troubles == 0 && time.Since(t.topic.through) < lately &&
		time.Since(t.slow) > slowFor
}

// apart gives turns back after a claim of all of them that failed. Each is claimed of by itself next: what
// is wrong may be with one of them.
func (s *scheduler) apart(turns []*turn) {
	for _, t := range turns {
		s.mu.Lock()
		t.much, t.idle = true, false
		s.probed(t)
		s.mu.Unlock()
		s.put(t, firstDatabaseWait)
	}
}

// slow notes that a claim or settlement of a scope took long, or failed: for a while nothing of it is done together with others'.
func (s *scheduler) slow(scope envelope.Scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.scopes[scope]; t != nil {
		t.slow = time.Now()
	}
}

func (s *scheduler) isSlow(scope envelope.Scope) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.scopes[scope]
	return t != nil && time.Since(t.slow) <= slowFor
}

// takeTurns makes the claims of some turns, all in one transaction, and gives the turns back. What scopes that have
// little cost is mostly the transaction, and its statements are sent together.
func (r *Relay) takeTurns(ctx context.Context, turns []*turn, req Request) ([]Claim, error) {
	if len(turns) == 1 {
		claim, err := r.takeTurn(ctx, turns[0], req)
		return []Claim{claim}, err
	}
	turns = slices.DeleteFunc(slices.Clone(turns), func(t *turn) bool { return !r.canSend(t) })
	if len(turns) == 0 {
		return nil, nil
	}
	reqs := make([]Request, len(turns))
	for i, t := range turns {
		reqs[i] = r.complete(r.request(t, req, mostMixed))
		if !req.Exact { // there a claim that fails costs the slot
			reqs[i].Limit = mixedLimit
		}
	}
	start := time.Now()
	claims, err := r.store.ClaimAll(ctx, reqs)
	if err != nil {
		r.database.blame(err)
		if ClassOf(err) != RowFault { // else each is told of with its scope
			r.observer.Trouble(Trouble{Kind: DatabaseTrouble, Err: fmt.Errorf("claim: %w", err)})
		}
		r.scheduler.apart(turns)
		return nil, err
	}
	r.database.worked()
	for i, claim := range claims {
		r.made(claim, time.Since(start))
		r.scheduler.claimed(turns[i], claim)
	}
	return claims, nil
}

// settling is a settlement that waits to be written together with others.
type settling struct {
	Settlement
	answer chan settled // has room for it
}

type settled struct {
	results []Result
	took    time.Duration
	err     error
	apart   bool // it is to be written by itself
}

// writeSettlements writes what is handed in by writeTogether until stop is closed: one settlement, and whatever others wait by
// then. So as many go together as come while others are being written.
func (r *Relay) writeSettlements(ctx context.Context, stop <-chan struct{}) {
	for {
		select {
		case first := <-r.settlements:
			r.writeGroup(ctx, r.group(first))
		case <-stop:
			return
		}
	}
}

// group is a settlement and others that wait, as many rows in all as a batch has, or the last one's more.
func (r *Relay) group(first settling) []settling {
	group := []settling{first}
	for rows := len(first.Verdicts); len(group) < mostMixed && rows < r.cfg.BatchRows; {
		select {
		case next := <-r.settlements:
			group, rows = append(group, next), rows+len(next.Verdicts)
		default:
			return group
		}
	}
	return group
}

func (r *Relay) writeGroup(ctx context.Context, group []settling) {
	start := time.Now()
	if one := group[0]; len(group) == 1 {
		results, err := r.store.Settle(ctx, one.Claim, one.Verdicts)
		one.answer <- settled{results: results, took: time.Since(start), err: err}
		return
	}
	all := make([]Settlement, len(group))
	for i, s := range group {
		all[i] = s.Settlement
		all[i].Limit = mixedLimit
	}
	results, err := r.store.SettleAll(ctx, all)
	for i, s := range group {
		answer := settled{took: time.Since(start), apart: err != nil}
		if err == nil {
			answer.results = results[i]
		}
		s.answer <- answer
	}
}

// writeTogether is write for what was delivered. If others are being written it waits for a moment and goes with those that
// wait too. What that fails for is one's own fault: then each is written by itself.
func (r *Relay) writeTogether(ctx context.Context, claim Claim, verdicts []Verdict) ([]Result, error) {
	alone := slices.ContainsFunc(verdicts, func(v Verdict) bool { return !v.Exported })
	if alone || r.scheduler.isSlow(claim.Scope) {
		return r.write(ctx, claim, verdicts)
	}
	s := settling{Settlement: Settlement{Claim: claim, Verdicts: verdicts}, answer: make(chan settled, 1)}
	timer := time.NewTimer(longQueue)
	defer timer.Stop()
	answer := settled{apart: true}
	select {
	case r.settlements <- s:
		answer = <-s.answer
	case <-timer.C: // what is being written takes long, and this may not
	}
	if answer.apart {
		start := time.Now()
		answer.results, answer.err = r.store.Settle(ctx, claim, verdicts)
		answer.took = time.Since(start)
	}
	if answer.took > mixedLimit || answer.err != nil {
		r.scheduler.slow(claim.Scope)
	}
	if answer.err != nil {
		return nil, answer.err
	}
	r.written(claim, verdicts, answer.results, answer.took)
	return answer.results, nil
}
