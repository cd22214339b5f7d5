package relay

import (
	"context"
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

// heard is how many answers there are.
func (a *answers) heard() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.errs) - a.open
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

// passed tells whether events of rows got through. Nothing is known of that if some failed for their
// own sake, or weren't read, and nothing else stood in the way of the others than those.
func passed(rows []Row, answers []error) (through, known bool) {
	blocked, faulty := false, false
	for i, err := range answers {
		switch class := ClassOf(err); {
		case class == Delivered:
			return true, true
		case class == RowFault, class == Failed, rows[i].Err != nil:
			faulty = true
		case class == Environment, class == Unknown:
			blocked = true
		}
	}
	return false, blocked || !faulty
}

// tooLargeToRead is the fault of a row whose payload the store did not read.
func tooLargeToRead(bytes int64) error {
	return &envelope.Fault{Reason: "the payload's text is " + strconv.FormatInt(bytes, 10) + " bytes long, more than the relay reads"}
}
