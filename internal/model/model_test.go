package model

import (
	"fmt"
	"strings"
	"testing"
)

// layout tells of each row which operation it is of.
type layout []int

// rules are what relays and outbox go by. The real ones ask the real code.
type rules struct {
	claim    func(rows table, limit, ahead int, by owner) (table, mask)
	settle   func(rows table, by owner, marks uint8, what judgement, reborn mask) table
	renew    func(rows table, by owner, marks uint8, which mask) table
	sent     func(q question) mask
	verdicts func(q question) judgement
	unheard  func(was, is row) (marks uint8) // after a claim of abandoned rows whose answer was lost

	asked   *decisions
	sendsOn bool // a mistake: the sink goes on behind an event that was refused
	eager   bool // a mistake: the relay settles although it has no answer
}

func realRules(t *testing.T, l layout) rules {
	o, d := newOutbox(t, l), newDecisions(t, l)
	return rules{
		asked: d, claim: o.claim, settle: o.settle, renew: o.renew,
		sent:     func(q question) mask { return d.ask(q).sent },
		verdicts: func(q question) judgement { return d.ask(q).verdicts },
		unheard:  func(was, _ row) uint8 { return was.marks }, // package store tests it
	}
}

// model is what is explored: a little outbox, some relays, and what may go wrong.
type model struct {
	rules
	layout layout
	claims int   // at once
	faults uint8 // at most

	refusals []answer          // that the sink gives
	operator bool              // retries and discards parked rows
	python   bool              // another exporter takes rows too, without regard to their order
	restores bool              // the database may be restored, and its ids used again
	letters  bool              // what can't be sent goes to a dead-letter topic
	lives    bool              // all claims are of one relay, which is never killed
	strict   bool              // a row alone may be parked only if relays that held it were killed
	only     func(s step) bool // the faults that happen; nil for all

	buffer []move // of next, used again
}

func (m *model) start() (s state) {
	s.faults = m.faults
	return s
}

// step names what happens from one state to the next.
type step struct {
	what  string
	claim int   // -1 if it is no claim's
	row   int   // -1 if it is about no row alone
	costs uint8 // faults

	kills   bool // a relay
	loses   bool // the answer to a claim
	lapses  bool // a lease of a relay that lives, or it can't take the marks off its token
	unparks bool // a row, by hand
	passes  bool // it is a delay that passes
}

func (s step) String() string {
	var b strings.Builder
	if s.claim >= 0 {
		fmt.Fprintf(&b, "claim %d: ", s.claim)
	}
	b.WriteString(s.what)
	if s.row >= 0 {
		fmt.Fprintf(&b, " (row %d)", s.row)
	}
	return b.String()
}

// moves collects what may happen next.
type moves struct {
	*model
	from state
	to   []move
}

type move struct {
	step
	state
	broken string // the invariant that the step breaks
}

// add notes one thing that may happen, if there is still room for the fault that it is.
func (n *moves) add(s step, change func(t *state) (broken string)) {
	if s.costs > n.from.faults || s.costs > 0 && n.only != nil && !n.only(s) {
		return
	}
	to := n.from
	to.faults -= s.costs
	broken := change(&to)
	if broken == "" && to == n.from {
		return
	}
	if broken == "" {
		broken = to.broken()
	}
	n.to = append(n.to, move{s, to, broken})
}

// next gives all that may happen. What makes progress comes first, time last.
func (m *model) next(s state) []move {
	n := moves{model: m, from: s, to: m.buffer[:0]}
	for i := range s.claims {
		if s.claims[i].stage != free {
			m.publish(&n, i)
			m.answers(&n, i)
			m.settlement(&n, i)
			m.burial(&n, i)
		}
	}
	m.claimAny(&n)
	m.records(&n)
	for i := range s.claims {
		if s.claims[i].stage != free {
			m.renewal(&n, i)
			m.misfortune(&n, i)
		}
	}
	m.leases(&n)
	m.others(&n)
	m.time(&n)
	m.buffer = n.to
	return n.to
}

// broken tells which invariant does not hold in a state, "" if all do.
func (s *state) broken() string {
	for i, r := range s.rows {
		switch {
		case r.exported && !r.arrived && !r.discarded && !r.buried:
			return fmt.Sprintf("I1: row %d is marked exported, and neither its event nor its letter ever arrived", i)
		case r.due == parked && !r.exported && !r.faulted:
			return fmt.Sprintf("I6: row %d is parked, and neither did the sink refuse it nor may it have ended %d relays", i, mostAlone)
		case r.attempts < 0:
			return fmt.Sprintf("I6: row %d has %d attempts", i, r.attempts)
		}
	}
	return ""
}

// arrive puts the event of a row into the topic.
func (m *model) arrive(s *state, i int, reborn bool) string {
	r := &s.rows[i]
	if r.reborn != reborn || r.arrived {
		return "" // of a row that is no more, or again
	}
	r.arrived, r.loose = true, false
	for j := range i {
		if before := s.rows[j]; m.layout[j] == m.layout[i] && !before.arrived && !before.exported && !m.python {
			return fmt.Sprintf("I2: row %d is first delivered before row %d of its operation", i, j)
		}
	}
	return ""
}
