package relay

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"outboxrelay/envelope"
)

const (
	// settleEvery is how often the answers so far are settled while others are open. What
	// has none then is waited for in the background.
	settleEvery = time.Second
	// longStep is how long a worker waits for one step.
	longStep = time.Second
	// shortStep is that for each of several claims when that is over.
	shortStep = longStep / 10
	// renewFor is how long a claim is renewed for events without an answer.
	renewFor = time.Minute
	// followedPerWorker bounds what waits in the background for answers: so many full
	// claims, or as many smaller ones as take no more. Claims get smaller before that.
	followedPerWorker = 4
	// leastFollowed is what a claim without bytes takes.
	leastFollowed = 16 << 10
	// rowWeight is what a row without an answer takes besides its payload, here and in the sink.
	rowWeight = 1 << 10
)

// delivery is one claim on its way to its end.
type delivery struct {
	claim   Claim
	start   time.Time
	answers *answers
	known   []error // the answers that were dealt with
	heard   int     // how many there were then

	insisting sync.WaitGroup // settlements that are tried again
	weight    atomic.Int64   // what it takes while no worker waits for it, in bytes

	mu       sync.Mutex
	followed int64 // what it takes while no worker waits for it, in bytes; 0 before
	over     bool  // it has ended

	survived chan struct{} // closed when the claim's marks have been taken off
	left     bool          // rows had no outcome when the claim had ended
	free     chan struct{} // closed when no worker has to wait for it any more
	beats    chan struct{} // holds something after a step was made
	step     atomic.Int64  // when that was, in nanoseconds after start
}

func newDelivery(claim Claim) *delivery {
	d := &delivery{
		claim: claim, start: time.Now(),
		survived: make(chan struct{}), free: make(chan struct{}), beats: make(chan struct{}, 1),
	}
	d.forget()
	return d
}

// beat tells that a step was made: waiting for servers is progress.
func (d *delivery) beat() {
	d.step.Store(int64(time.Since(d.start)))
	select {
	case d.beats <- struct{}{}:
	default:
	}
}

// waits is true while rows of the claim have no answer.
func (d *delivery) waits() bool { return slices.Contains(d.known, errNoAnswer) }

// forget lets go of the payloads of rows whose answers were dealt with, and notes what the
// others take.
func (d *delivery) forget() {
	weight := int64(leastFollowed)
	for i := range d.claim.Rows {
		if row := &d.claim.Rows[i]; d.known == nil || d.known[i] == errNoAnswer { //nolint:errorlint // identity is meant: this very value marks an open row
			weight += row.Bytes + rowWeight
		} else {
			row.Payload = nil
		}
	}
	d.weight.Store(weight)
}

// gotThrough is true if an event was delivered.
func (d *delivery) gotThrough() bool {
	return slices.ContainsFunc(d.known, func(err error) bool { return ClassOf(err) == Delivered })
}

// suspect is true while a row of the claim may still end this process.
func (d *delivery) suspect() bool {
	select {
	case <-d.survived:
		return false
	default:
		return d.leftBehind()
	}
}

// leftBehind is true for a claim of rows that a former one has left behind.
func (d *delivery) leftBehind() bool { return Marks(d.claim.Token) > 0 }

// deliver takes claims to their ends, and returns when these are reached or no worker has to wait
// for them. It calls beat at each step.
func (r *Relay) deliver(ctx context.Context, claims []Claim, beat func()) {
	deliveries, ended := make([]*delivery, len(claims)), make([]<-chan struct{}, len(claims))
	for i, claim := range claims {
		deliveries[i] = newDelivery(claim)
		ended[i] = r.begin(ctx, deliveries[i])
	}
	long := time.Now().Add(longStep) // of all of them: a slow one does not make the next ones wait longer
	for i, d := range deliveries {
		beat()
		r.attend(d, ended[i], time.Until(long), beat)
	}
}

// attend waits for the end of a delivery, or until no worker has to. A step that takes long, which for the first one is told,
// is the database's, which is then left to itself: nothing more is claimed of the scope until it is through.
func (r *Relay) attend(d *delivery, ended <-chan struct{}, long time.Duration, beat func()) {
	for ; ; long = longStep {
		select {
		case <-ended:
			return
		case <-d.free:
			return
		case <-d.beats:
			beat()
		case <-time.After(max(long, shortStep)):
			if r.release(d) {
				r.scheduler.hold(d.claim.Scope)
				r.background.Go(func() {
					select {
					case <-ended:
					case <-d.beats:
					}
					r.scheduler.letGo(d.claim.Scope)
				})
			}
		}
	}
}

// begin begins to take a claim to its end, and gives a channel that is closed when that is
// reached.
func (r *Relay) begin(ctx context.Context, d *delivery) (ended <-chan struct{}) {
	done := make(chan struct{})
	r.flights.Store(d, nil)
	r.background.Go(func() {
		defer close(done)
		defer r.flights.Delete(d)
		d.left = r.follow(ctx, d, done)
		d.insisting.Wait()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.over = true
		r.followed.Add(-d.followed)
	})
	return done
}

// release has no worker wait for a delivery any longer: its topic is silent, or the database
// does not take what is to be written of its rows, and neither is to keep others from being
// served. Unless one of its rows may end the process, or too much is followed so already.
// It is true if a worker that waited needn't any more.
func (r *Relay) release(d *delivery) bool {
	size := d.weight.Load()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over || d.followed > 0 {
		return false
	}
	d.followed = size
	if followed := r.followed.Add(size); d.suspect() || followed > r.mostFollowed() {
		return false
	}
	r.scheduler.unattended(d.claim.Scope)
	close(d.free)
	return true
}

// mostFollowed bounds what waits in the background for answers, in bytes.
func (r *Relay) mostFollowed() int64 {
	most := followedPerWorker * int64(r.cfg.Workers) * (r.cfg.BatchBytes + leastFollowed)
	if r.cfg.MostFollowed > 0 {
		most = min(most, r.cfg.MostFollowed)
	}
	return most
}

var errSilent = errors.New("no answer came to what was sent within the delivery time-out; it is waited for, and the lease renewed meanwhile")

// published tells what has become of a claim's events by the delivery time-out.
func (r *Relay) published(d *delivery) {
	r.observer.Published(d.claim, time.Since(d.start))
	through, known := passed(d.claim.Rows, d.known)
	if !known {
		r.scheduler.undecided(d.claim.Scope)
		return
	}
	r.scheduler.delivered(d.claim.Scope, through, d.start, r.policy.jitter)
}

// follow publishes a claim, waits for the answers and settles them: all together if they come
// within a second. The scheduler is told whether events get through. While answers are open
// the claim is renewed, so that nobody sends an event again whose first delivery may still
// succeed, but not for ever. When the lease is over the rows belong to whoever claims them,
// and only a late success is still marked. It tells whether rows are left without an outcome.
func (r *Relay) follow(ctx context.Context, d *delivery, ended <-chan struct{}) (left bool) {
	defer r.observer.Released(d.claim)
	d.answers = r.publish(ctx, d.claim, r.background.Go)
	if d.leftBehind() {
		claim := d.claim                                            // renewals change it
		r.background.Go(func() { r.outlive(ctx, d, claim, ended) }) // from now on: making events of rows may end the process too
	}
	r.collect(ctx, d, d.start.Add(r.scheduler.patience(d.claim.Scope)))
	if d.waits() {
		if !d.gotThrough() && !d.leftBehind() { // what such rows do says nothing of others
			r.scheduler.hush(d.claim.Scope, d.start, d.start.Add(r.cfg.DeliveryTimeout+2*settleEvery))
		}
		r.release(d)
		r.collect(ctx, d, d.start.Add(r.cfg.DeliveryTimeout+settleEvery))
	}
	r.published(d)
	if !d.waits() {
		return slices.ContainsFunc(d.known, isUnknown)
	}
	r.observer.Trouble(Trouble{Kind: SendTrouble, Scope: d.claim.Scope, Err: errSilent})
	r.collect(ctx, d, d.claim.Expires.Add(renewFor+r.cfg.Lease)) // its lease ends before
	if d.waits() {
		r.background.Go(func() { r.markLate(ctx, d) })
	}
	return true
}

// collect settles answers as they come, until all are there, the lease is over or
// that time has come. It renews the lease when a third of it has passed.
func (r *Relay) collect(ctx context.Context, d *delivery, until time.Time) {
	for {
		left := min(time.Until(until), time.Until(d.claim.Expires))
		all := r.wait(ctx, d.answers, min(settleEvery, left))
		r.settleNew(ctx, d)
		if all || left <= 0 || ctx.Err() != nil {
			return
		}
		if time.Until(d.claim.Expires) <= r.cfg.Lease*2/3 && time.Since(d.start) < renewFor {
			r.renew(ctx, d)
		}
		d.beat()
	}
}

// renew gives the rows without an answer a new lease, under a token without marks: this
// process lives. If the claim has lost them all its lease is over.
func (r *Relay) renew(ctx context.Context, d *delivery) {
	var ids []int64
	for i, err := range d.known {
		if isUnknown(err) {
			ids = append(ids, d.claim.Rows[i].ID)
		}
	}
	start := time.Now()
	held, err := r.store.Renew(ctx, d.claim, ids, r.cfg.Lease)
	switch {
	case ctx.Err() != nil:
	case err != nil: // tried again as long as the lease lasts
		r.failed(d.claim.Scope, err)
	case len(held) == 0:
		d.claim.Expires = start
	default:
		r.database.worked()
		d.claim.Expires = start.Add(r.cfg.Lease)
	}
}

// wait is true when every row is answered, which it waits for at most that long.
func (r *Relay) wait(ctx context.Context, a *answers, atMost time.Duration) bool {
	sleep(ctx, max(atMost, 0), a.all)
	select {
	case <-a.all:
		return true
	default:
		return false
	}
}

// settleNew settles the rows that were answered since it was called last. Rows that go to the
// dead-letter topic come last, and no worker waits for that.
func (r *Relay) settleNew(ctx context.Context, d *delivery) {
	heard := d.answers.heard()
	if d.known != nil && heard == d.heard {
		return
	}
	now := r.hear(d)
	verdicts, faulty := r.policy.verdicts(d.claim.Rows, now, d.known), []Verdict(nil)
	var letters []envelope.DeadLetter
	if r.cfg.DeadLetters != nil {
		verdicts, faulty = splitFaulty(verdicts)
		letters = r.letters(d.claim, faulty)
	}
	d.known, d.heard = now, heard
	d.forget()
	r.settle(ctx, d, verdicts)
	if len(faulty) > 0 {
		r.release(d)
		r.settle(ctx, d, r.bury(ctx, letters, faulty))
	}
}

// hear gives the answers so far. An event among the new ones that got through, early or late, shows
// that others can.
func (r *Relay) hear(d *delivery) []error {
	now := d.answers.snapshot()
	for i, err := range now {
		if ClassOf(err) == Delivered && (d.known == nil || isUnknown(d.known[i])) {
			r.scheduler.delivered(d.claim.Scope, true, d.start, r.policy.jitter)
			break
		}
	}
	return now
}

// markLate waits for what is still open after the lease and marks what turns out to
// be delivered. Anything else is no longer this claim's to write.
func (r *Relay) markLate(ctx context.Context, d *delivery) {
	for all := false; !all && ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-d.answers.news:
		}
		all = r.wait(ctx, d.answers, settleEvery) // others may follow
		now := r.hear(d)
		var late []Verdict
		for i := range d.claim.Rows {
			if ClassOf(d.known[i]) == Unknown && ClassOf(now[i]) == Delivered {
				late = append(late, Verdict{Row: &d.claim.Rows[i], Exported: true})
			}
		}
		d.known = now
		if err := r.settleOnce(ctx, d, d.claim, late, r.write); err != nil {
			r.insist(ctx, d, d.claim, late, err)
		}
	}
}
