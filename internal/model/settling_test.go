package model

import "fmt"

// settlement is the relay writing what it knows, once a second or when all is
// answered. It tries the same verdicts again until the database has taken them.
func (m *model) settlement(n *moves, i int) {
	c := &n.from.claims[i]
	if c.any(func(e entry) bool { return e.note == burying }) {
		return // the letters come first
	}
	again := c.any(func(e entry) bool { return e.note == settling })
	outstanding := func(e entry) bool { return m.eager && c.stage == sent && e.answer.open() }
	if !again && !c.any(func(e entry) bool { return e.note == news && (e.answer.final() || outstanding(e)) }) {
		return
	}
	n.add(step{what: "settles", claim: i, row: -1}, func(s *state) string {
		s.claims[i].look(again)
		return m.settled(s, i)
	})
	n.add(step{what: "settles, and the answer is lost", claim: i, row: -1, costs: 1}, func(s *state) string {
		s.claims[i].look(again)
		return m.write(s, i)
	})
	if !again {
		n.add(step{what: "settles, and the database refuses", claim: i, row: -1, costs: 1}, func(s *state) string {
			s.claims[i].look(again)
			return ""
		})
	}
}

// look takes down which answers are settled now.
func (c *claim) look(again bool) {
	for r := range c.rows {
		if e := &c.rows[r]; !again && e.note == news && e.answer.final() {
			e.note = settling
		}
	}
}

// settled is a settlement that succeeds.
func (m *model) settled(s *state, i int) string {
	broken := m.write(s, i)
	by := first + owner(i)
	for r := range s.rows {
		e := &s.claims[i].rows[r]
		if e.note != settling {
			continue
		}
		if m.faulty(&s.claims[i], *e) {
			e.note = burying
			continue
		}
		e.note = known
		if row := s.rows[r]; row.exported && row.owner == by && broken == "" {
			broken = fmt.Sprintf("I4: row %d is exported, and the claim that settled it is still on it", r)
		}
	}
	s.claims[i].letter = absent
	s.tidy(i)
	return broken
}

// write has the database write a claim's verdicts, and looks at what they changed.
func (m *model) write(s *state, i int) string {
	c, before, by := &s.claims[i], s.rows, first+owner(i)
	var reborn mask
	for r, e := range c.rows {
		if e.reborn {
			reborn |= 1 << r
		}
	}
	what := m.verdicts(m.question(c))
	s.rows = m.settle(s.rows, by, c.marks, what, reborn)
	return s.trespass(i, before, m.freed(before, by, what))
}

// trespass tells whether a claim has changed a row that it did not hold, more than by
// marking it exported, or due where that is allowed.
func (s *state) trespass(i int, before table, freed mask) string {
	for r, is := range s.rows {
		was := before[r]
		if was.owner == first+owner(i) {
			continue
		}
		was.exported = is.exported
		if freed.has(r) {
			was.due = is.due
		}
		if was != is {
			return fmt.Sprintf("I3: claim %d changes row %d, which it does not hold", i, r)
		}
	}
	return ""
}

// question is what the relay asks itself when it settles.
func (m *model) question(c *claim) question {
	q := question{rows: c.mask(), former: c.former, late: c.stage == late, letter: c.letter}
	if m.letters && q.letter == absent {
		q.letter = unknown // not sent yet
	}
	for r, e := range c.rows {
		switch {
		case !e.answer.final():
		case e.note == known:
			q.before[r], q.now[r] = e.answer, e.answer
		case e.note == settling:
			q.now[r] = e.answer
		}
	}
	return q
}
