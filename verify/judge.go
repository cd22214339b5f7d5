package verify

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
)

// row is a row of the outbox.
type row struct {
	id         int64
	scope      int // of rules
	operation  uuid.UUID
	event      envelope.Event
	fault      error // why the row has no event
	state      rowState
	exportedAt time.Time
}

type rowState uint8

const (
	waiting  rowState = iota // not exported
	exported                 // delivered, as the relay says
	givenUp                  // discarded or dead-lettered
)

// record is a record of a topic.
type record struct {
	place Place
	at    time.Time
	event envelope.Event
	fault error // why the record is no event
}

// rules are what is compared.
type rules struct {
	namespace   string
	scopes      []envelope.Scope
	topics      []string // of the scopes
	index       map[envelope.Scope]int
	exactlyOnce bool
	examples    int // of each kind, at most
}

// scopeOf gives the number of an event's scope, -1 for other applications and scopes.
func (r *rules) scopeOf(e *envelope.Event) int {
	if i, ok := r.index[e.Scope]; ok && e.Namespace == r.namespace {
		return i
	}
	return -1
}

// judge compares the rows and records of one part: first it takes all rows, then all records, then it concludes. It is
// all that grows with the part, so what it keeps of each event is small.
type judge struct {
	*rules
	*tally
	most int // events and operations; 0 for no limit
	seed maphash.Seed

	numbers    map[uuid.UUID]int32
	operations []operation
	events     map[eventKey]event

	rowCount, recordCount int64
}

// operation is what is known of an operation.
type operation struct {
	id          uuid.UUID
	first, last int64 // the lowest and the highest version delivered; 0 if none was
	scope       int32
	partition   int32 // of its first record
	found       int32 // versions from first to last that are in the topic or in the table, and rows given up that have none
	// unordered: the records that are left don't tell the order of first deliveries.
	unordered bool
}

type eventKey struct {
	operation int32 // number
	version   int64
}

// event is what is known of an event.
type event struct {
	print      uint64 // of its row, or of its first record if it has none
	row        int64  // 0 if it has none
	exportedAt int64  // microseconds
	state      rowState
	delivered  bool
}

// errTooMany: the part is too large to be judged at once.
var errTooMany = errors.New("too many events at once")

func newJudge(r *rules, most int) *judge {
	return &judge{
		rules: r, tally: newTally(r.examples), most: most, seed: maphash.MakeSeed(),
		numbers: map[uuid.UUID]int32{}, events: map[eventKey]event{},
	}
}

// takeRow takes a row of the part.
func (j *judge) takeRow(r *row) error {
	j.rowCount++
	n := j.number(r.operation, r.scope)
	known := event{row: r.id, state: r.state, exportedAt: r.exportedAt.UnixMicro()}
	key := eventKey{n, r.event.StateVersion}
	if r.fault == nil {
		known.print = j.print(&r.event)
	} else {
		key.version = -r.id // no record has it, and no other row
	}
	j.events[key] = known
	return j.full()
}

// takeRecord takes a record of the part, those of a partition in their order. Only one under its operation's scope and in
// that scope's topic is a delivery.
func (j *judge) takeRecord(h *history, r *record) error {
	j.recordCount++
	if r.fault != nil {
		j.add(Malformed, Example{Record: r.place, Detail: r.fault.Error()})
		return nil
	}
	e := &r.event
	example := Example{Operation: e.OperationID, Version: e.StateVersion, Scope: e.Scope, Record: r.place}
	scope := j.scopeOf(e)
	n, known := j.numbers[e.OperationID]
	switch {
	case known && int(j.operations[n].scope) != scope:
		example.Detail = fmt.Sprintf("it says namespace %q, and the operation is of %v of namespace %q",
			e.Namespace, j.scopes[j.operations[n].scope], j.namespace)
		j.add(WrongScope, example)
	case scope < 0:
		example.Detail = "of namespace " + e.Namespace
		j.add(Others, example)
	case j.topics[scope] != r.place.Topic:
		example.Detail = fmt.Sprintf("its topic is %q", j.topics[scope])
		j.add(WrongScope, example)
	default:
		j.deliver(h, r, j.number(e.OperationID, scope), example)
	}
	return j.full()
}

// deliver takes in a delivery.
func (j *judge) deliver(h *history, r *record, n int32, example Example) {
	key := eventKey{n, r.event.StateVersion}
	known, ok := j.events[key]
	example.Row = known.row
	print := j.print(&r.event)
	switch {
	case !ok:
		known.print = print
	case known.print != print && known.row != 0:
		j.add(Altered, detailed(example, "it differs from its row"))
	case known.print != print:
		j.add(Altered, detailed(example, "it differs from its first delivery"))
	}
	if known.delivered {
		j.add(Duplicated, example)
		return
	}
	known.delivered = true
	j.events[key] = known
	j.order(h, r, &j.operations[n], example)
}

// order takes in the first delivery of an event.
func (j *judge) order(h *history, r *record, op *operation, example Example) {
	version := r.event.StateVersion
	switch {
	case op.last == 0:
		op.partition, op.first = r.place.Partition, version
		// What looks like a first delivery may repeat one that is gone.
		op.unordered = h.compacted || !h.reaches(r.place.Partition, r.at)
	case r.place.Partition != op.partition:
		op.unordered = true // partitions are read side by side
	}
	switch {
	case version > op.last:
	case op.unordered:
		j.add(Unjudged, detailed(example, "its order"))
	default:
		j.add(OutOfOrder, detailed(example, fmt.Sprintf("first delivered after version %d", op.last)))
	}
	op.first, op.last = min(op.first, version), max(op.last, version)
}

func detailed(e Example, detail string) Example {
	e.Detail = detail
	return e
}

// print is a fingerprint of what a record has beside its operation, version and scope.
func (j *judge) print(e *envelope.Event) uint64 {
	var h maphash.Hash
	h.SetSeed(j.seed)
	_, _ = h.WriteString(e.Type)
	maphash.WriteComparable(&h, e.Time.UnixMicro())
	_, _ = h.Write(e.Data)
	return h.Sum64()
}

// number gives an operation's number. The scope counts only for one that is new.
func (j *judge) number(id uuid.UUID, scope int) int32 {
	n, ok := j.numbers[id]
	if !ok {
		n = int32(len(j.operations))
		j.numbers[id] = n
		j.operations = append(j.operations, operation{id: id, scope: int32(scope)})
	}
	return n
}

func (j *judge) full() error {
	held := len(j.events) + len(j.operations)
	if j.most > 0 && held > j.most || held > math.MaxInt32 {
		return errTooMany
	}
	return nil
}
