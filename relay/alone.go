package relay

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"outboxrelay/envelope"
)

// mostAlone is how many claims of a row alone may run out before it is parked.
const mostAlone = 3

// aloneLook is how long scopes are left that can't be sent now.
const aloneLook = time.Second

// errDeadly is the fault of a row whose owners ended again and again.
var errDeadly = fmt.Errorf("%d times the relay ended, or was stopped, while it held this event alone; it is sent no more, "+
	"because it may be what ends the relay", mostAlone)

// abandoned holds the scopes in which claims that ran out have left rows behind. One
// of those rows may have ended its owner, so they are tried one at a time in a
// process: an innocent one has got through before the process ends the next time.
type abandoned struct {
	mu     sync.Mutex
	scopes map[envelope.Scope]bool
	order  []envelope.Scope
	news   chan struct{} // holds something after a scope was added

	unheard []string // tokens of the last claims whose answer was an error, but which may hold a row
}

// mostUnheard bounds what is remembered of claims without an answer.
const mostUnheard = 100

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

// lost remembers a claim of which nothing was heard.
func (a *abandoned) lost(token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unheard = append(a.unheard, token)
	if len(a.unheard) > mostUnheard {
		a.unheard = a.unheard[1:]
	}
}

// deadly is true if a row may be what ended its owners: so many claims of it alone have
// run out, and the last one is not known to have run out for another reason.
func (a *abandoned) deadly(row *Row) bool {
	if attemptsAlone(row.Expired) < mostAlone {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return !slices.Contains(a.unheard, unmarked(row.Expired))
}

// take gives all scopes and forgets them.
func (a *abandoned) take() []envelope.Scope {
	a.mu.Lock()
	defer a.mu.Unlock()
	scopes := a.order
	a.order, a.scopes = nil, map[envelope.Scope]bool{}
	return scopes
}

// workAlone delivers abandoned rows, one after the other and the scopes in turns, until
// ctx ends.
func (r *Relay) workAlone(ctx, inFlight context.Context, worker int) {
	for ctx.Err() == nil {
		scopes := r.abandoned.take()
		progress := false
		for _, scope := range scopes {
			if ctx.Err() == nil && r.deliverAlone(ctx, inFlight, scope, worker) {
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

// deliverAlone claims and delivers one abandoned row of a scope; false if there was none
// or the scope has to wait.
func (r *Relay) deliverAlone(ctx, inFlight context.Context, scope envelope.Scope, worker int) bool {
	switch open, served := r.scheduler.open(scope); {
	case !served:
		return false
	case !open || r.sink.Ready(scope) != nil:
		r.abandoned.add(scope)
		return false
	}
	leave, ok := r.database.enter(ctx)
	if !ok {
		return false
	}
	r.pulse.busy(worker)
	claim, err := r.claimAlone(inFlight, scope)
	leave()
	if err != nil {
		r.failed(scope, fmt.Errorf("claim: %w", err))
		r.abandoned.add(scope)
		return false
	}
	r.database.worked()
	if len(claim.Rows) == 0 {
		return false
	}
	r.scheduler.delivered(scope, r.deliver(inFlight, claim, func() { r.pulse.busy(worker) }), r.policy.jitter)
	return true
}

// survived takes the mark off a claim of a row alone when no answer came: whatever
// became of the event, it did not end this process.
func (r *Relay) survived(ctx context.Context, d *delivery) {
	if attemptsAlone(d.claim.Token) > 0 {
		r.renew(ctx, d)
	}
}
