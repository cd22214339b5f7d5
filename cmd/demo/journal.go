package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// patience is how long the story waits for anything that must happen.
const patience = 30 * time.Second

// journal brings what is heard of the table and of the topic together, and shows it. The two are heard independently, so
// it holds a happening back until what led to it was shown: a delivery comes after the claim, the mark after the delivery.
type journal struct {
	screen *screen

	mu      sync.Mutex
	byID    map[int64]*row
	rows    map[transition]*row
	waiting []happening   // heard and not shown yet
	changed chan struct{} // closed and replaced when something was shown
}

// row is one row of the outbox, as far as was shown.
type row struct {
	transition
	written    time.Time
	claims     int
	exported   bool
	refused    bool
	until      time.Time // when the last claim ends, unless it is settled before
	deliveries []*delivery
}

// happening is one thing to show as soon as ready is true. Both are called with the journal's mu held.
type happening struct {
	ready func() bool
	show  func()
}

func newJournal(s *screen) *journal {
	return &journal{screen: s, byID: map[int64]*row{}, rows: map[transition]*row{}, changed: make(chan struct{})}
}

// heard takes a change of the table.
func (j *journal) heard(c change) {
	j.add(happening{
		ready: func() bool {
			return c.Kind != exported || j.allOf(c, func(r *row) bool { return len(r.deliveries) > 0 })
		},
		show: func() { j.showChange(c) },
	})
}

// arrived takes a record of the topic. One that nobody wrote is never shown; the check at the end finds it.
func (j *journal) arrived(d *delivery) {
	at := time.Now()
	j.add(happening{
		ready: func() bool {
			r := j.rows[d.transition()]
			return d.malformed == nil && r != nil && r.claims > len(r.deliveries)
		},
		show: func() { j.showDelivery(d, at) },
	})
}

func (j *journal) add(h happening) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.waiting = append(j.waiting, h)
	for i := 0; i < len(j.waiting); i++ {
		if next := j.waiting[i]; next.ready() {
			j.waiting = append(j.waiting[:i], j.waiting[i+1:]...)
			next.show()
			i = -1 // it may be what an earlier one waits for
		}
	}
	close(j.changed)
	j.changed = make(chan struct{})
}

// allOf tells whether something holds for all rows of a change.
func (j *journal) allOf(c change, holds func(*row) bool) bool {
	for _, changed := range c.Rows {
		if r := j.byID[changed.ID]; r == nil || !holds(r) {
			return false
		}
	}
	return true
}

func (j *journal) showChange(c change) {
	if c.Kind == written {
		j.showWritten(c)
		return
	}
	var names []string
	for _, changed := range c.Rows {
		if r := j.byID[changed.ID]; r != nil { // else it was written before the watch began
			r.take(c.Kind, changed)
			names = append(names, name(r, c.Kind, changed))
		}
	}
	if len(names) > 0 {
		j.screen.happened(c.Kind, c.Tenant, "%s%s", shorten(names), detail(c.Kind, c.Rows[0]))
	}
}

// take notes what was shown of a row.
func (r *row) take(kind string, changed changedRow) {
	switch kind {
	case claimed:
		r.claims++
		r.until = changed.Until
	case exported:
		r.exported = true
	case refused:
		r.refused = true
	}
}

func (j *journal) showWritten(c change) {
	for _, changed := range c.Rows {
		r := &row{transition: transition{c.Tenant, changed.Operation, changed.Version}, written: c.At}
		j.byID[changed.ID], j.rows[r.transition] = r, r
		j.screen.happened(written, c.Tenant, "%s  -> %s", r, changed.State)
	}
}

func (j *journal) showDelivery(d *delivery, at time.Time) {
	r := j.rows[d.transition()]
	r.deliveries = append(r.deliveries, d)
	place := fmt.Sprintf("%s  partition %d, offset %d", r, d.partition, d.offset)
	switch first := r.deliveries[0]; {
	case first == d:
		j.screen.happened(delivered, r.tenant, "%s, %s after it was written", place, since(at.Sub(r.written)))
	case d.same(first):
		j.screen.happened(duplicate, r.tenant, "%s: offset %d again, the same to the byte", place, first.offset)
	default:
		j.screen.happened(duplicate, r.tenant, "%s: NOT THE SAME as offset %d", place, first.offset)
	}
}

// detail says what is worth knowing about a change beyond its rows.
func detail(kind string, first changedRow) string {
	switch kind {
	case refused:
		return fmt.Sprintf("  next attempt in %s, last_error:\n%s", since(time.Until(first.Due)), indent(first.Error))
	case held:
		return fmt.Sprintf("  behind an earlier event of its operation, for %s", since(time.Until(first.Due)))
	default:
		return ""
	}
}

// String names an event as the screen does: the beginning of the operation's id, and the version.
func (t transition) String() string { return fmt.Sprintf("%.6s v%d", t.operation, t.version) }

func name(r *row, kind string, changed changedRow) string {
	if kind == claimed && changed.Attempts > 1 {
		return fmt.Sprintf("%s (attempt %d)", r, changed.Attempts)
	}
	return r.String()
}

func shorten(names []string) string {
	const most = 4
	if more := len(names) - most; more > 0 {
		names = append(names[:most:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// await waits until holds is true for every one of the transitions. what is for the error.
func (j *journal) await(ctx context.Context, what string, holds func(*row) bool, all ...transition) error {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		missing, changed := j.missing(holds, all)
		if missing == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline.C:
			return fmt.Errorf("waited %s for %s of tenant %s to be %s", patience, missing, missing.tenant, what)
		}
	}
}

// missing is the first transition for which holds is not true.
func (j *journal) missing(holds func(*row) bool, all []transition) (*transition, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, t := range all {
		if r := j.rows[t]; r == nil || !holds(r) {
			return &t, j.changed
		}
	}
	return nil, j.changed
}

// firstDelivery is an event as it came first.
func (j *journal) firstDelivery(t transition) *delivery {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rows[t].deliveries[0]
}

// claimedUntil is when the last claim of an event ends.
func (j *journal) claimedUntil(t transition) time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rows[t].until
}

// The conditions to await.
func isWritten(*row) bool     { return true }
func isDelivered(r *row) bool { return len(r.deliveries) > 0 }
func isExported(r *row) bool  { return r.exported }
func isRefused(r *row) bool   { return r.refused }
