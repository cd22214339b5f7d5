package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// event names a transition.
type event struct {
	operation uuid.UUID
	version   int64
}

func (e event) String() string { return fmt.Sprintf("%s:%d", e.operation, e.version) }

// row is a committed transition with its outbox row.
type row struct {
	event
	scope             string // as the table has it
	created, exported time.Time
	isExported        bool
	parked            bool
	lastError         string
}

// delivery is a record of the topic that is an event.
type delivery struct {
	event
	scope     string
	partition int32
	offset    int64
	sent      time.Time // when a relay made it
}

// duplicate is an event that came again.
type duplicate struct {
	event
	first, again time.Time
}

// verdict is what the judge found. It compares in the simplest way there is, and trusts no other part of the project.
type verdict struct {
	events, records int
	// What must not be.
	lost, reordered, parked, malformed, crossed, unknown, left int
	duplicates                                                 []duplicate
	examples                                                   []string
	once                                                       bool // duplicates must not be either
}

const mostExamples = 20

func (v *verdict) blemish(n *int, format string, args ...any) {
	*n++
	if len(v.examples) < mostExamples {
		v.examples = append(v.examples, fmt.Sprintf(format, args...))
	}
}

// err tells what is wrong, or is nil.
func (v *verdict) err() error {
	var faults []error
	for _, f := range []struct {
		n    int
		what string
	}{
		{v.lost, "events are lost"}, {v.reordered, "events came after later ones of their operation"},
		{v.parked, "rows are parked"}, {v.malformed, "records are malformed"},
		{v.crossed, "records are under another scope than their operation"},
		{v.unknown, "records are of no committed transition"}, {v.left, "rows are not exported"},
	} {
		if f.n > 0 {
			faults = append(faults, fmt.Errorf("%d %s", f.n, f.what))
		}
	}
	if n := len(v.duplicates); v.once && n > 0 {
		faults = append(faults, fmt.Errorf("%d events came again, the first of them %v", n, v.duplicates[0].event))
	}
	for _, example := range v.examples {
		faults = append(faults, errors.New("  "+example))
	}
	return errors.Join(faults...)
}

// compare judges committed rows by all deliveries, in whatever order they are given. malformed says what is wrong with
// records that are no events.
func compare(rows []row, deliveries []delivery, malformed []string) *verdict {
	v := &verdict{events: len(rows), records: len(deliveries) + len(malformed)}
	for _, text := range malformed {
		v.blemish(&v.malformed, "malformed: %s", text)
	}
	known := map[event]*row{}
	for i := range rows {
		known[rows[i].event] = &rows[i]
	}
	first := v.follow(known, deliveries)
	for i := range rows {
		r := &rows[i]
		_, came := first[r.event]
		switch {
		case r.parked:
			v.blemish(&v.parked, "parked: %v: %s", r.event, r.lastError)
		case !r.isExported:
			v.blemish(&v.left, "not exported: %v", r.event)
		case !came:
			v.blemish(&v.lost, "lost: %v, exported at %v", r.event, r.exported)
		}
	}
	return v
}

// follow goes through the deliveries as a consumer meets them, and gives the first of each event.
func (v *verdict) follow(known map[event]*row, deliveries []delivery) map[event]delivery {
	deliveries = slices.SortedFunc(slices.Values(deliveries), func(a, b delivery) int {
		return cmp.Or(cmp.Compare(a.partition, b.partition), cmp.Compare(a.offset, b.offset))
	})
	first := map[event]delivery{}
	latest := map[uuid.UUID]delivery{} // of highest version
	for _, d := range deliveries {
		where := fmt.Sprintf("%v at %d/%d", d.event, d.partition, d.offset)
		r := known[d.event]
		if r == nil {
			v.blemish(&v.unknown, "no such transition: %s", where)
			continue
		}
		if d.scope != r.scope {
			v.blemish(&v.crossed, "wrong scope: %s is under %q, not %q", where, d.scope, r.scope)
		}
		if earlier, twice := first[d.event]; twice {
			v.duplicates = append(v.duplicates, newDuplicate(earlier, d))
			continue
		}
		first[d.event] = d
		before, any := latest[d.operation]
		switch {
		case any && before.partition != d.partition:
			v.blemish(&v.reordered, "out of order: %s, and version %d in partition %d", where, before.version, before.partition)
		case any && before.version > d.version:
			v.blemish(&v.reordered, "out of order: %s came first after version %d", where, before.version)
		default:
			latest[d.operation] = d
		}
	}
	return first
}

// newDuplicate notes a repetition. What was held back on its way may come after what was sent later.
func newDuplicate(a, b delivery) duplicate {
	if b.sent.Before(a.sent) {
		a, b = b, a
	}
	return duplicate{a.event, a.sent, b.sent}
}

// missing are operations of which the table has fewer transitions than the application knows to be committed.
func missing(rows []row, known map[uuid.UUID]int) (n int) {
	there := map[uuid.UUID]int{}
	for _, r := range rows {
		there[r.operation]++
	}
	for operation, committed := range known {
		if there[operation] < committed {
			n++
		}
	}
	return n
}
