package model

// faulty is true for an entry whose letter is to be sent when the rest is settled.
func (m *model) faulty(c *claim, e entry) bool {
	return m.letters && e.answer == rowFault && c.letter == absent
}

// burial is what may become of the letters of a settlement, which share their fate. One
// without an answer may have arrived; its row is left to the next claim.
func (m *model) burial(n *moves, i int) {
	if !n.from.claims[i].any(func(e entry) bool { return e.note == burying }) {
		return
	}
	for _, fate := range []struct {
		answer
		costs uint8
	}{{delivered, 0}, {rowFault, 1}, {environment, 1}, {unknown, 1}} {
		is := step{what: "the answer to its letter: " + fate.String(), claim: i, row: -1, costs: fate.costs}
		n.add(is, func(s *state) string {
			s.buried(i, fate.answer)
			return ""
		})
	}
}

func (s *state) buried(i int, a answer) {
	c := &s.claims[i]
	for r := range c.rows {
		e := &c.rows[r]
		switch {
		case e.note != burying:
			continue
		case a == unknown:
			e.note = known
			continue
		case a == delivered && e.reborn == s.rows[r].reborn:
			s.rows[r].buried = true
		}
		e.note, c.letter = settling, a
	}
	s.tidy(i)
}

// freed are the rows that verdicts on dead letters make due: the other ones of their
// operations.
func (m *model) freed(rows table, by owner, what judgement) (freed mask) {
	for i, v := range what {
		if v != bury || rows[i].owner != by {
			continue
		}
		for r, operation := range m.layout {
			if operation == m.layout[i] {
				freed |= 1 << r
			}
		}
	}
	return freed
}
