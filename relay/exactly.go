package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"outboxrelay/envelope"
)

const (
	// A transaction takes claims of several scopes, so that many small ones cost little, but
	// only what is due at once, for so long, and of so many.
	mixFor     = 100 * time.Millisecond
	mostMixed  = 200
	firstEpoch = 250 * time.Millisecond // waits after a slot could not be taken
	lastEpoch  = 10 * time.Second
)

// slotWorker delivers what it claims in transactions of its slot, one after the other.
type slotWorker struct {
	*Relay
	number  int
	slot    Slot
	session Session // nil: the slot must be taken before anything is claimed
	begun   bool    // it was taken once
	fails   int     // in a row

	// What may be claimed by tokens of the slot and is not decided: what is known of it, and
	// the scopes in which there may be more. Nil for all of them.
	mine   []Held
	doubts []envelope.Scope
	// verdicts on rows of mine, should they turn out not to be committed.
	verdicts map[int64]Verdict

	stale atomic.Bool // somebody saw a claim of the slot that ran out
}

// work relays through the slot until ctx ends.
func (w *slotWorker) work(ctx, inFlight context.Context) {
	defer w.drop()
	for ctx.Err() == nil {
		w.pulse.idle(w.number)
		if !w.ready(ctx) {
			continue
		}
		next, ok := w.scheduler.next(ctx)
		if !ok {
			return
		}
		leave, ok := w.database.enter(ctx)
		if !ok {
			w.giveBack(next.turns)
			return
		}
		w.pulse.busy(w.number)
		if next.look {
			w.look(ctx, next.turns)
			leave()
			continue
		}
		claims, err := w.claim(inFlight, next.turns[0])
		leave()
		if err == nil {
			w.deliver(inFlight, claims)
		} else {
			w.drop()
		}
		for _, c := range claims {
			w.observer.Released(c)
		}
	}
}

// slotWorkers makes one for each slot of this relay.
func (r *Relay) slotWorkers() []*slotWorker {
	workers := make([]*slotWorker, r.cfg.Workers)
	r.slots.begin(r.cfg.Workers)
	for i := range workers {
		workers[i] = &slotWorker{Relay: r, number: i, slot: SlotOf(r.cfg.ExactlyOnce.Prefix, r.cfg.ExactlyOnce.Instance, i)}
	}
	return workers
}

// slotHealth knows which slots could not be taken when that was last tried.
type slotHealth struct {
	mu   sync.Mutex
	errs []error
}

func (h *slotHealth) begin(slots int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs = slices.Repeat([]error{errSlotNotTaken}, slots)
}

func (h *slotHealth) set(slot int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs[slot] = err
}

// err is why no slot is held, nil if one is or there are none.
func (h *slotHealth) err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if slices.Contains(h.errs, nil) || len(h.errs) == 0 {
		return nil
	}
	return h.errs[0]
}

var errSlotNotTaken = errors.New("no slot has been taken yet")

// ready takes the slot, if it isn't held, and is true if it is held then.
func (w *slotWorker) ready(ctx context.Context) bool {
	if w.stale.Swap(false) {
		w.drop()
		w.doubts = nil
	}
	if w.session != nil {
		return true
	}
	w.pulse.busy(w.number)
	err := w.take(ctx)
	w.slots.set(w.number, err)
	if err == nil {
		w.fails = 0
		return true
	}
	w.drop()
	w.pulse.idle(w.number)
	if ctx.Err() != nil {
		return false
	}
	w.fails++
	w.observer.Trouble(Trouble{Kind: SlotTrouble, Err: fmt.Errorf("slot %s: %w", w.slot.ID, err)})
	sleep(ctx, w.policy.jitter(growing(firstEpoch, lastEpoch, w.fails)), nil)
	return false
}

// drop gives the slot up. It is the answer to every outcome that is not a clean success: the
// ledger decides what became of it.
func (w *slotWorker) drop() {
	if w.session != nil {
		w.session.Close()
		w.session = nil
	}
}

// take takes the slot and decides all claims of it that are not decided. The order of its
// steps is what makes that safe; see docs/exactly-once.md.
func (w *slotWorker) take(ctx context.Context) (err error) {
	listed, err := w.list(ctx)
	if err != nil {
		return err
	}
	if w.session, err = w.cfg.ExactlyOnce.Sink.Open(ctx, w.slot); err != nil {
		return err
	}
	entry, ok, err := w.cfg.ExactlyOnce.Sink.Last(ctx, w.slot)
	switch {
	case err != nil:
		return err
	case !ok && (w.begun || len(listed) > 0):
		return errLedgerLost
	case !ok:
		source, err := w.source(ctx)
		if err != nil {
			return err
		}
		entry = Entry{Token: w.slot.first(), Source: source}
		if _, err := w.session.Commit(ctx, entry, nil); err != nil {
			return fmt.Errorf("begin the ledger: %w", err)
		}
	}
	if err := w.decide(ctx, entry, listed, w.verdicts); err != nil {
		return err
	}
	w.begun, w.mine, w.verdicts, w.doubts = true, nil, nil, []envelope.Scope{}
	return nil
}

// list gives the claims of the slot that are not decided, as far as is known.
func (w *slotWorker) list(ctx context.Context) ([]Held, error) {
	listed := slices.Clone(w.mine)
	scopes := w.doubts
	if scopes == nil {
		scopes = w.scheduler.everServed()
	}
	held, err := w.held(ctx, scopes)
	if err != nil {
		return nil, err
	}
	for _, h := range held {
		if slot, ok := slotOfToken(w.cfg.ExactlyOnce.Prefix, h.Token); ok && slot == w.slot {
			listed = append(listed, h)
		}
	}
	return listed, nil
}

// claim claims what is due, of several scopes if there is little of each, all with one token.
// After an error nobody knows what is claimed.
func (w *slotWorker) claim(ctx context.Context, first *turn) (claims []Claim, err error) {
	token, begin := w.slot.newToken(), time.Now()
	rows, bytes := 0, int64(0)
	for t, n := first, 1; t != nil; n++ {
		alone := w.scheduler.troubled(t)
		claim, err := w.takeTurn(ctx, t, Request{Token: token, Exact: true})
		if err != nil {
			w.doubts = append(w.doubts, t.scope)
			return claims, err
		}
		if len(claim.Rows) > 0 {
			held := Held{Scope: claim.Scope, Token: token}
			for i := range claim.Rows {
				held.Rows = append(held.Rows, claim.Rows[i].ID)
				bytes += claim.Rows[i].Bytes
			}
			rows += len(claim.Rows)
			w.mine = append(w.mine, held)
			claims = append(claims, claim)
		}
		if t = nil; !alone && rows < w.cfg.BatchRows && bytes < w.cfg.BatchBytes && n < mostMixed && time.Since(begin) < mixFor {
			t = w.scheduler.also()
		}
	}
	return claims, nil
}

// deliver sends the events of claims that share a token in one transaction, and marks them.
func (w *slotWorker) deliver(ctx context.Context, claims []Claim) {
	if len(claims) == 0 {
		return
	}
	start := time.Now()
	sending, err := w.prepare(ctx, claims)
	if err != nil {
		w.failed(claims[0].Scope, err)
		w.drop()
		return
	}
	answers, err := sending.send(ctx, w)
	for _, c := range claims {
		w.observer.Published(c, time.Since(start))
	}
	if err != nil {
		w.drop()
		w.blame(sending, answers, err, start)
		return
	}
	for _, s := range sending {
		w.scheduler.delivered(s.claim.Scope, true, start, w.policy.jitter)
		if err := w.write(ctx, s.claim, s.exported()); err != nil {
			w.failed(s.claim.Scope, err)
			w.drop() // whoever takes the slot marks the rest
			return
		}
	}
	w.mine = nil
}

// sent is what of one claim goes into the transaction.
type sent struct {
	claim  Claim
	events []envelope.Event
	rows   []*Row // those of the events
}

// exported is the verdict that all of it was committed.
func (s sent) exported() []Verdict {
	verdicts := make([]Verdict, len(s.rows))
	for i, row := range s.rows {
		verdicts[i] = Verdict{Row: row, Exported: true}
	}
	return verdicts
}

// transaction is what goes into one.
type transaction []sent

// prepare makes events of claims. Rows that can't become events are settled before anything
// is sent: what is claimed when the transaction commits must be what is in it.
func (w *slotWorker) prepare(ctx context.Context, claims []Claim) (all transaction, err error) {
	for _, claim := range claims {
		a := newAnswers(len(claim.Rows))
		events, index := w.events(claim, a)
		if verdicts := w.policy.verdicts(claim.Rows, a.snapshot(), nil); len(verdicts) > 0 {
			if err := w.write(ctx, claim, verdicts); err != nil {
				return nil, err
			}
			w.tell(claim, verdicts)
		}
		s := sent{claim: claim, events: events}
		for _, i := range index {
			s.rows = append(s.rows, &claim.Rows[i])
		}
		if len(events) == 0 {
			w.scheduler.undecided(claim.Scope)
			continue
		}
		all = append(all, s)
	}
	return all, nil
}

// send commits all events and the entry that says so. After an error answers are those of all
// events, in their order, or nil.
func (all transaction) send(ctx context.Context, w *slotWorker) (answers []error, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	need := w.cfg.DeliveryTimeout + leaseMargin
	entry := Entry{Token: all[0].claim.Token, Rows: map[envelope.Scope][]int64{}}
	var events []envelope.Event
	for _, s := range all {
		if time.Until(s.claim.Expires) < need {
			return nil, notEnoughLease(need)
		}
		for _, row := range s.rows {
			entry.Rows[s.claim.Scope] = append(entry.Rows[s.claim.Scope], row.ID)
		}
		events = append(events, s.events...)
	}
	if entry.Source, err = w.source(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, w.cfg.DeliveryTimeout, errTransactionLimit)
	defer cancel()
	return w.session.Commit(ctx, entry, events)
}

var errTransactionLimit = Environment.Wrap(errors.New("the transaction was not committed within the delivery time-out"))

// blame decides what is to be written of the rows of a transaction that failed, if it turns out
// not to be committed, and tells the scheduler whose topic is in trouble.
func (w *slotWorker) blame(all transaction, answers []error, why error, start time.Time) {
	w.verdicts = map[int64]Verdict{}
	guilty := slices.ContainsFunc(answers, isGuilty)
	at := 0
	for _, s := range all {
		mine := make([]error, len(s.rows))
		for n := range mine {
			switch {
			case !guilty && ClassOf(why) == NotAttempted:
				mine[n] = why
			case !guilty:
				mine[n] = Environment.Wrap(why)
			default:
				if mine[n] = answers[at+n]; !isGuilty(mine[n]) {
					mine[n] = errAborted
				}
			}
		}
		rows := make([]Row, len(s.rows))
		for n, row := range s.rows {
			rows[n] = *row
		}
		at += len(s.events)
		verdicts := w.policy.verdicts(rows, mine, nil)
		for _, v := range verdicts {
			w.verdicts[v.Row.ID] = v
		}
		w.tell(s.claim, verdicts)
		w.blameTopic(s.claim.Scope, mine, start)
	}
}

// isGuilty is true for an answer that says why a transaction failed.
func isGuilty(err error) bool {
	switch ClassOf(err) {
	case RowFault, Failed, Environment:
		return true
	case Delivered, NotAttempted, Unknown:
	}
	return false
}

// blameTopic tells the scheduler what the answers to a scope's events say of its topic.
func (w *slotWorker) blameTopic(scope envelope.Scope, answers []error, start time.Time) {
	if slices.ContainsFunc(answers, func(err error) bool { return ClassOf(err) == Environment }) {
		w.scheduler.delivered(scope, false, start, w.policy.jitter)
	} else {
		w.scheduler.undecided(scope)
	}
}

var errAborted = NotAttempted.Wrap(errors.New("another event of its transaction was not delivered"))
