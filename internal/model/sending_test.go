package model

import "fmt"

// publish hands the events of a claim to the sink, or gives the rows back if too
// little of the lease is left.
func (m *model) publish(n *moves, i int) {
	c := &n.from.claims[i]
	if c.stage != held {
		return
	}
	if c.leased {
		n.add(step{what: "sends its events", claim: i, row: -1}, func(s *state) string { return m.send(s, i, false) })
	}
	late := step{what: "finds too little of its lease left and sends nothing", claim: i, row: -1}
	if c.leased {
		late.costs = 1 // it was slow
	}
	n.add(late, func(s *state) string { return m.send(s, i, true) })
}

func (m *model) send(s *state, i int, short bool) (broken string) {
	c := &s.claims[i]
	c.stage = sent
	which := m.sent(question{rows: c.mask(), former: c.former, short: short})
	for r := range c.rows {
		switch {
		case c.rows[r].answer == absent:
		case which.has(r):
			c.rows[r].answer = flying
			c.former = 0 // nothing hangs on it any more
			if broken == "" {
				broken = s.sentTwice(i, r)
			}
		default: // kept back by the relay itself
			c.rows[r].answer = notAttempted
			if m.deadly(s, r) {
				c.rows[r].answer, s.rows[r].faulted = rowFault, true
			}
		}
	}
	s.tidy(i)
	return broken
}

// mostAlone is how many claims of a row alone may be left behind before it is parked.
const mostAlone = 3

// deadly tells whether a row may be what ends relays, as far as the relay of a claim can
// know: so many claims of it alone before this one ran out. If strict, relays have ended
// with all of them.
func (m *model) deadly(s *state, r int) bool {
	if m.strict && s.rows[r].deaths < mostAlone {
		return false
	}
	return s.rows[r].alone > mostAlone
}

// sentTwice tells whether another relay waits for the answer to the same event, and
// may think that the row is its own.
func (s *state) sentTwice(i, r int) string {
	for j := range s.claims {
		other := &s.claims[j]
		if j != i && other.rows[r].mine && other.rows[r].answer.open() && other.rows[r].reborn == s.claims[i].rows[r].reborn {
			return fmt.Sprintf("I8: row %d is sent while claim %d, whose lease runs, waits for its answer", r, j)
		}
	}
	return ""
}

// answers is what may become of the events that a claim has sent. Those of one
// operation arrive in order, and behind one that was refused none does.
func (m *model) answers(n *moves, i int) {
	c := &n.from.claims[i]
	if c.stage != sent && c.stage != late {
		return
	}
	inFlight := map[int]bool{}
	for r, e := range c.rows {
		switch e.answer {
		case landed:
			m.answer(n, i, r, delivered, step{what: "is told late that the event arrived"})
			m.answer(n, i, r, unknown, step{what: "is told that the answer is lost", costs: 1})
		case blocked:
			m.answer(n, i, r, notAttempted, step{what: "is told that the event was held back"})
		case flying:
			if !inFlight[m.layout[r]] {
				m.fate(n, i, r)
			}
			inFlight[m.layout[r]] = true
		}
	}
}

// answer is one answer of the sink.
func (m *model) answer(n *moves, i, r int, a answer, is step) {
	is.claim, is.row = i, r
	n.add(is, func(s *state) string {
		s.claims[i].rows[r].answer = a
		s.tidy(i)
		return ""
	})
}

// fate is what may become of an event that is next to arrive.
func (m *model) fate(n *moves, i, r int) {
	reborn := n.from.claims[i].rows[r].reborn
	n.add(step{what: "the event arrives and is acknowledged", claim: i, row: r}, func(s *state) string {
		s.claims[i].rows[r].answer = delivered
		s.tidy(i)
		return m.arrive(s, r, reborn)
	})
	n.add(step{what: "the event arrives, and the answer is outstanding", claim: i, row: r, costs: 1}, func(s *state) string {
		s.claims[i].rows[r].answer = landed
		return m.arrive(s, r, reborn)
	})
	for _, refusal := range m.refusals {
		n.add(step{what: "the event is refused: " + refusal.String(), claim: i, row: r, costs: 1}, func(s *state) string {
			if refusal == rowFault && s.rows[r].reborn == reborn {
				s.rows[r].faulted = true
			}
			s.claims[i].rows[r].answer = refusal
			if !m.sendsOn {
				m.behind(s, i, r, func(e *entry, _ int) { e.answer = blocked })
			}
			s.tidy(i)
			return ""
		})
	}
	n.add(step{what: "the client gives the event up, and sends no more", claim: i, row: r, costs: 1}, func(s *state) string {
		s.giveUp(i, r)
		m.behind(s, i, r, func(e *entry, _ int) { e.answer = blocked })
		s.tidy(i)
		return ""
	})
	n.add(step{what: "the client gives all events of the operation up", claim: i, row: r, costs: 1}, func(s *state) string {
		s.giveUp(i, r)
		m.behind(s, i, r, func(_ *entry, later int) { s.giveUp(i, later) })
		s.tidy(i)
		return ""
	})
}

func (s *state) giveUp(i, r int) {
	s.letGo(i, r)
	s.claims[i].rows[r].answer = unknown
}

// behind does something to the later events of an operation that have been sent.
func (m *model) behind(s *state, i, r int, do func(e *entry, r int)) {
	c := &s.claims[i]
	for later := r + 1; later < len(m.layout); later++ {
		if m.layout[later] == m.layout[r] && c.rows[later].answer == flying {
			do(&c.rows[later], later)
		}
	}
}

// String is the class as package relay names it.
func (a answer) String() string {
	return [...]string{"absent", "unsent", "in flight", "arrived", "held back",
		"delivered", "row fault", "environment", "failed", "not attempted", "unknown"}[a]
}
