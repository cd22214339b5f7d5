package relay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"outboxrelay/envelope"
)

// SetScopes replaces the scopes that [Relay.Run] serves, also while it runs. A scope
// that is taken out gets no new claims; what is in flight is finished. New ones get their
// first turns in an order that differs from relay to relay, so that several don't ask for
// the same rows one after the other.
func (r *Relay) SetScopes(scopes []envelope.Scope) {
	scopes = slices.Clone(scopes)
	rand.Shuffle(len(scopes), func(i, k int) { scopes[i], scopes[k] = scopes[k], scopes[i] })
	r.scheduler.set(scopes)
}

// Run relays the events of its scopes until ctx ends. It then makes no further
// claims, finishes what is in flight, and returns nil after at most the grace period;
// what has no answer by then stays claimed until its lease ends. It waits for
// whatever can heal and so never ends by itself. It must run only once at a time.
func (r *Relay) Run(ctx context.Context) error {
	r.started = time.Now()
	inFlight, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
	var workers, writers sync.WaitGroup
	settled := make(chan struct{}) // closed when nothing is left to be settled
	if r.cfg.ExactlyOnce == nil {
		for i := range r.cfg.Workers {
			workers.Go(func() { r.work(ctx, inFlight, i) })
			writers.Go(func() { r.writeSettlements(inFlight, settled) })
		}
		workers.Go(func() { r.workAbandoned(ctx, inFlight, r.cfg.Workers) })
	} else {
		slots := r.slotWorkers()
		for _, w := range slots {
			workers.Go(func() { w.work(ctx, inFlight) })
		}
		workers.Go(func() { r.help(ctx, slots) })
	}
	<-ctx.Done()
	timer := time.AfterFunc(r.cfg.Grace, func() { giveUp(errGraceOver) })
	defer timer.Stop()
	workers.Wait()
	r.background.Wait()
	close(settled)
	writers.Wait()
	giveUp(nil)
	return nil
}

var errGraceOver = errors.New("the grace period is over")

// work looks for what is due, claims it and delivers it, one after the other, until ctx
// ends. Claims and deliveries run under inFlight: cutting them short would leave rows
// claimed.
func (r *Relay) work(ctx, inFlight context.Context, worker int) {
	for {
		r.pulse.idle(worker)
		next, ok := r.scheduler.next(ctx)
		if !ok {
			return
		}
		leave, ok := r.database.enter(ctx)
		if !ok {
			r.giveBack(next.turns)
			return
		}
		r.pulse.busy(worker)
		if next.look {
			r.look(ctx, next.turns)
			leave()
			continue
		}
		turns := r.scheduler.mix(next.turns[0], min(mostMixed, r.cfg.BatchRows))
		claims, err := r.takeTurns(inFlight, turns, Request{})
		leave()
		if err == nil {
			claims = slices.DeleteFunc(claims, func(c Claim) bool { return len(c.Rows) == 0 })
			r.deliver(inFlight, claims, func() { r.pulse.busy(worker) })
		}
	}
}

// look finds out which of some scopes have rows that are due, and gives their turns back.
func (r *Relay) look(ctx context.Context, turns []*turn) {
	scopes := make([]envelope.Scope, len(turns))
	for i, t := range turns {
		scopes[i] = t.scope
	}
	due, err := r.store.Due(ctx, scopes)
	switch {
	case ctx.Err() != nil:
		r.giveBack(turns)
	case err != nil:
		r.failed(scopes[0], err)
		r.scheduler.unseen(turns)
	default:
		r.database.answered()
		r.scheduler.looked(turns, due)
	}
}

// giveBack gives turns back unused.
func (r *Relay) giveBack(turns []*turn) {
	for _, t := range turns {
		r.scheduler.later(t, 0)
	}
}

// takeTurn makes the claim of one turn and gives the turn back. The claim is empty, without an
// error, if the sink can't take events of the scope.
func (r *Relay) takeTurn(ctx context.Context, t *turn, req Request) (Claim, error) {
	if !r.canSend(t) {
		return Claim{}, nil
	}
	req = r.request(t, req, 1)
	start := time.Now()
	claim, err := r.makeClaim(ctx, req)
	if time.Since(start) > mixedLimit {
		r.scheduler.slow(t.scope)
	}
	if err != nil {
		r.failed(t.scope, fmt.Errorf("claim: %w", err))
		r.scheduler.failed(t, req.Rows, ClassOf(err) == RowFault, time.Since(start))
		return Claim{}, err
	}
	r.database.worked()
	r.scheduler.claimed(t, claim)
	return claim, nil
}

// canSend is true if the sink can take events of a turn's scope. Else it gives the turn back.
func (r *Relay) canSend(t *turn) bool {
	err := r.sink.Ready(t.scope)
	if err != nil {
		r.observer.Trouble(Trouble{Kind: SinkTrouble, Scope: t.scope, Err: err})
		r.scheduler.later(t, notReadyWait)
	}
	return err == nil
}

// request is what is asked for a turn, with the scope's share of a batch.
func (r *Relay) request(t *turn, req Request, share int) Request {
	req.Scope = t.scope
	req.Rows, req.Bytes = r.scheduler.limits(t, max(1, r.cfg.BatchRows/share), max(1, r.cfg.BatchBytes/int64(share)))
	if req.Rows > 1 {
		req.Limit = quickClaim
	}
	return req
}

// Health is what the probes ask about.
type Health struct {
	Scopes       int
	DatabaseSeen time.Time // when the database last answered; zero if it never did
	Database     error     // of the last call, nil if it worked
	Stuck        time.Duration
	Slots        SlotsHealth // of exactly-once mode
}

// Health tells how the relay does, from memory. Stuck is for how long a worker, or a claim
// that is followed, has made no step although nothing that it waits for may last that long; 0 is healthy.
func (r *Relay) Health() Health {
	seen, err := r.database.health()
	longest := 2*r.cfg.Lease + r.cfg.Grace
	stuck := r.pulse.stuck(longest)
	r.flights.Range(func(key, _ any) bool {
		d := key.(*delivery)
		if still := time.Since(d.start) - time.Duration(d.step.Load()); still > longest {
			stuck = max(stuck, still)
		}
		return true
	})
	return Health{Scopes: r.scheduler.size(), DatabaseSeen: seen, Database: err, Stuck: stuck, Slots: r.slots.health()}
}

// Stalled is nil unless nothing got through by the last claims of the scope's topic, for
// reasons that lie outside the events. It answers from memory.
func (r *Relay) Stalled(scope envelope.Scope) error {
	if n := r.scheduler.stalled(scope); n > 0 {
		return fmt.Errorf("by the last %d claims nothing got through", n)
	}
	return nil
}

// pulse tells whether workers get on.
type pulse struct {
	start time.Time      // makes the times below monotonic
	since []atomic.Int64 // each worker's last step, in nanoseconds after start, plus 1; 0 while it waits for a turn
}

func newPulse(workers int) *pulse {
	return &pulse{start: time.Now(), since: make([]atomic.Int64, workers)}
}

func (p *pulse) idle(worker int) { p.since[worker].Store(0) }
func (p *pulse) busy(worker int) { p.since[worker].Store(1 + int64(time.Since(p.start))) }

// stuck is how long ago the slowest busy worker made a step, if that is more than
// longest.
func (p *pulse) stuck(longest time.Duration) time.Duration {
	var most time.Duration
	for i := range p.since {
		if since := p.since[i].Load(); since != 0 {
			most = max(most, time.Since(p.start)-time.Duration(since-1))
		}
	}
	if most <= longest {
		return 0
	}
	return most
}
