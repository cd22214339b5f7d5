package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"outboxrelay/envelope"
)

const (
	// aloneLook is how long scopes are left that can't be sent now.
	aloneLook = time.Second
	// survival is how long a process has to live after it began to send a row that may be
	// deadly to know that it is not.
	survival = 500 * time.Millisecond
	// calmLeases is how many leases a process has to live before it tries a row alone: the end of
	// one that lives for moments only says nothing of its rows.
	calmLeases = 2
	// mostTogether is how many abandoned rows are tried together at first.
	mostTogether = 200
)

var errDeadly = errors.New("three times the relay ended, or was stopped, while it held this event alone; it is sent no more, " +
	"because it may be what ends the relay")

// abandoned holds the scopes in which claims that ran out have left rows behind. One
// of those rows may have ended its owner, so no two claims of them are under way in a
// process at once, unless it has survived the first, and those that run out are followed
// by smaller ones.
type abandoned struct {
	mu     sync.Mutex
	scopes map[envelope.Scope]bool
	order  []envelope.Scope
	news   chan struct{} // holds something after a scope was added
}

func newAbandoned() *abandoned {
	return &abandoned{scopes: map[envelope.Scope]bool{}, news: make(chan struct{}, 1)}
}

func (a *abandoned) add(scope envelope.Scope) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.scopes[scope] {
		return
	}
	a.scopes[scope] = true
	a.order = append(a.order, scope)
	select {
	case a.news <- struct{}{}:
	default:
	}
}

// take gives all scopes and forgets them.
func (a *abandoned) take() []envelope.Scope {
	a.mu.Lock()
	defer a.mu.Unlock()
	scopes := a.order
	a.order, a.scopes = nil, map[envelope.Scope]bool{}
	return scopes
}

// workAbandoned delivers abandoned rows, the scopes in turns, until ctx ends.
func (r *Relay) workAbandoned(ctx, inFlight context.Context, worker int) {
	for ctx.Err() == nil {
		scopes := r.abandoned.take()
		progress := false
		for _, scope := range scopes {
			if ctx.Err() == nil && r.deliverAbandoned(ctx, inFlight, scope, worker) {
				progress = true
			}
		}
		r.pulse.idle(worker)
		switch {
		case progress:
		case len(scopes) > 0:
			sleep(ctx, aloneLook, nil)
		default:
			sleep(ctx, time.Hour, r.abandoned.news)
		}
	}
}

// deliverAbandoned claims and delivers some abandoned rows of a scope; false if there
// are none or the scope has to wait.
func (r *Relay) deliverAbandoned(ctx, inFlight context.Context, scope envelope.Scope, worker int) bool {
	leave, ok := r.database.enter(ctx)
	if !ok {
		return false
	}
	ready := r.sink.Ready(scope) == nil
	rows, served := r.scheduler.together(scope, min(mostTogether, r.cfg.BatchRows), ready)
	if rows == 0 {
		leave()
		if served {
			r.abandoned.add(scope)
		}
		return false
	}
	r.pulse.busy(worker)
	claim, err := r.makeClaim(inFlight, Request{Scope: scope, Rows: rows, Abandoned: true, Wary: time.Since(r.started) < calmLeases*r.cfg.Lease})
	leave()
	if err != nil {
		r.failed(scope, fmt.Errorf("claim: %w", err))
		r.scheduler.undecided(scope)
		r.abandoned.add(scope)
		return false
	}
	r.database.worked()
	if len(claim.Rows) == 0 {
		r.scheduler.undecided(scope)
		return false
	}
	d := newDelivery(claim)
	ended := r.begin(inFlight, d)
	for time.Since(d.start) < r.cfg.Lease { // whatever keeps it longer is not its rows
		select {
		case <-ended:
			return true
		case <-d.survived:
			return true
		case <-time.After(aloneLook):
			r.pulse.busy(worker) // waiting for servers is progress
		}
	}
	return true
}

// outlive takes the marks off a claim of abandoned rows when this process has lived for a moment
// with them, or if rows are left when the claim has ended by then: whatever becomes of the
// events, and of what is written about them, they did not end this process.
func (r *Relay) outlive(ctx context.Context, d *delivery, claim Claim, ended <-chan struct{}) {
	for wait := survival; ; wait = aloneLook {
		select {
		case <-ended:
			if !d.left {
				return
			}
			ended = nil // and soon, as long as it is fresh
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if err := r.unmark(ctx, claim); err == nil {
			close(d.survived)
			return
		} else if ctx.Err() == nil {
			r.failed(claim.Scope, err)
		}
	}
}

// unmark takes the marks off those rows of a claim that it still holds.
func (r *Relay) unmark(ctx context.Context, claim Claim) error {
	ids := make([]int64, len(claim.Rows))
	for i := range ids {
		ids[i] = claim.Rows[i].ID
	}
	_, err := r.store.Renew(ctx, claim, ids, r.cfg.Lease)
	return err
}

func isUnknown(err error) bool { return ClassOf(err) == Unknown }
