package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
)

const (
	// leaseMargin is what must be left of a lease beyond the delivery time-out when a
	// send begins: time to mark the rows.
	leaseMargin = 3 * time.Second
	// insistAtOnce is how many settlements that failed are tried again at once.
	insistAtOnce = 2
)

// answers collects what a sink says about the rows of one claim.
type answers struct {
	mu   sync.Mutex
	errs []error // per row; errNoAnswer until it is answered
	open int
	all  chan struct{} // closed when every row is answered
	news chan struct{} // holds something after an answer came
}

func newAnswers(n int) *answers {
	a := &answers{errs: make([]error, n), open: n, all: make(chan struct{}), news: make(chan struct{}, 1)}
	for i := range a.errs {
		a.errs[i] = errNoAnswer
	}
	return a
}

// set takes the answer for row i. Only the first one counts.
func (a *answers) set(i int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.errs[i] != errNoAnswer { //nolint:errorlint // identity is meant: this very value marks an open row
		return
	}
	a.errs[i] = err
	if a.open--; a.open == 0 {
		close(a.all)
	}
	select {
	case a.news <- struct{}{}:
	default:
	}
}

// snapshot is the answers so far.
func (a *answers) snapshot() []error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.errs)
}

// publish makes events of a claim's rows and hands them to the sink, in a goroutine
// that it starts with start: a sink may block for as long as it likes, and the lease
// goes on meanwhile. It returns at once; the answers fill as they come.
func (r *Relay) publish(ctx context.Context, claim Claim, start func(func())) *answers {
	a := newAnswers(len(claim.Rows))
	events, index := r.events(claim, a)
	if len(events) == 0 {
		return a
	}
	if need := r.cfg.DeliveryTimeout + leaseMargin; time.Until(claim.Expires) < need {
		for _, i := range index {
			a.set(i, notEnoughLease(need))
		}
		return a
	}
	start(func() {
		r.sink.Publish(ctx, events, func(i int, err error) { a.set(index[i], err) })
	})
	return a
}

// events gives the events of a claim that are to be sent and the row that each is of.
// Rows that can't become events, and rows behind those, are answered here. Events of
// one operation stand together: a sink then has the least to do between two of them.
func (r *Relay) events(claim Claim, a *answers) (events []envelope.Event, index []int) {
	blocked := map[uuid.UUID]bool{}
	events = make([]envelope.Event, 0, len(claim.Rows))
	index = make([]int, 0, len(claim.Rows))
	for _, i := range byOperation(claim.Rows) {
		row := &claim.Rows[i]
		if blocked[row.OperationID] {
			a.set(i, errBehind)
			continue
		}
		if Marks(row.Expired) >= MostMarks {
			blocked[row.OperationID] = true
			a.set(i, RowFault.Wrap(errDeadly))
			continue
		}
		event, err := r.event(claim.Scope, row)
		if err != nil {
			blocked[row.OperationID] = true
			a.set(i, err)
			continue
		}
		events = append(events, event)
		index = append(index, i)
	}
	return events, index
}

// event makes the event of one row.
func (r *Relay) event(scope envelope.Scope, row *Row) (envelope.Event, error) {
	if row.Err != nil {
		return envelope.Event{}, row.Err
	}
	if row.Payload == nil {
		return envelope.Event{}, RowFault.Wrap(tooLargeToRead(row.Bytes))
	}
	e, err := envelope.New(r.cfg.Namespace, scope, row.OperationID, row.Type, row.CreatedAt, row.Payload)
	return e, RowFault.Wrap(err)
}

// byOperation gives the indexes of rows with those of one operation together, in the
// order of the operations' first rows.
func byOperation(rows []Row) []int {
	first := make(map[uuid.UUID]int, len(rows))
	order := make([]int, len(rows))
	for i := range rows {
		order[i] = i
		if _, ok := first[rows[i].OperationID]; !ok {
			first[rows[i].OperationID] = i
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return first[rows[a].OperationID] - first[rows[b].OperationID]
	})
	return order
}

// passed tells whether events got through. Nothing is known of that if some failed for their
// own sake, and nothing else stood in the way of the others than those.
func passed(answers []error) (through, known bool) {
	blocked, faulty := false, false
	for _, err := range answers {
		switch ClassOf(err) {
		case Delivered:
			return true, true
		case Environment, Unknown:
			blocked = true
		case RowFault, Failed:
			faulty = true
		case NotAttempted:
		}
	}
	return false, blocked || !faulty
}

// settle writes verdicts, once, and gives those that were not written.
func (r *Relay) settle(ctx context.Context, d *delivery, verdicts []Verdict) (unwritten []Verdict, why error) {
	if len(verdicts) == 0 {
		return nil, nil
	}
	d.beat()
	if err := r.settleOnce(ctx, d.claim, verdicts); err != nil && ctx.Err() == nil {
		r.failed(d.claim.Scope, err)
		return verdicts, err
	}
	return nil, nil
}

// insist writes verdicts that were not written for a reason, and tries again until the store takes
// them or ctx ends: a row that was delivered must be marked, not sent again. What the store refuses
// for what it is, is tried in smaller and smaller parts, so that a single row does not keep others
// from being written, and given up for a row alone when its claim, which was to end then, has long
// been over. Only a few such calls are under way at once, so that others find a connection.
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

// insistOnce makes one call of those.
func (r *Relay) insistOnce(ctx context.Context, d *delivery, claim Claim, part []Verdict) error {
	select {
	case r.insisting <- struct{}{}:
		defer func() { <-r.insisting }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	d.beat()
	err := r.settleOnce(ctx, claim, part)
	if err != nil && ctx.Err() == nil {
		r.failed(claim.Scope, err)
	}
	return err
}

// settleOnce writes verdicts and tells of it.
func (r *Relay) settleOnce(ctx context.Context, claim Claim, verdicts []Verdict) error {
	start := time.Now()
	results, err := r.store.Settle(ctx, claim, verdicts)
	if err != nil {
		return err
	}
	r.database.worked()
	r.observer.Settled(claim, verdicts, results, time.Since(start))
	r.tell(claim, verdicts)
	return nil
}

// failed tells of a call of the store that failed.
func (r *Relay) failed(scope envelope.Scope, err error) {
	if ClassOf(err) == RowFault {
		r.database.refused(err)
	} else {
		r.database.failed(err)
	}
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

// tooLargeToRead is the fault of a row whose payload the store did not read.
func tooLargeToRead(bytes int64) error {
	return &envelope.Fault{Reason: "the payload's text is " + strconv.FormatInt(bytes, 10) + " bytes long, more than the relay reads"}
}
