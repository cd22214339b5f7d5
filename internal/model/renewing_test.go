package model

// renewal is a new lease for the rows of a claim that have no answer. It is not only
// tried while the lease runs: a settlement before it may have taken long. If the answer
// is lost, the relay counts on no more than it did.
func (m *model) renewal(n *moves, i int) {
	c := &n.from.claims[i]
	if c.stage != sent || !c.any(func(e entry) bool { return e.answer.waits() }) {
		return
	}
	n.add(step{what: "renews its lease", claim: i, row: -1}, func(s *state) string {
		return m.renewed(s, i, true)
	})
	n.add(step{what: "renews its lease, and the answer is lost", claim: i, row: -1, costs: 1}, func(s *state) string {
		return m.renewed(s, i, false)
	})
	if c.marked {
		n.add(step{what: "can't take the marks off its token", claim: i, row: -1, costs: 1, lapses: true}, func(s *state) string {
			s.claims[i].marked = false
			s.tidy(i)
			return ""
		})
	}
}

// renewed has the database renew what has no answer. The relay may hear of it.
func (m *model) renewed(s *state, i int, heard bool) (broken string) {
	c, before, by := &s.claims[i], s.rows, first+owner(i)
	var which, has mask
	for r, e := range c.rows {
		if !e.answer.waits() {
			continue
		}
		which |= 1 << r
		if row := &s.rows[r]; row.owner == by && !row.exported {
			has |= 1 << r
			row.alone, row.deaths = 0, 0 // its relay lives
		}
	}
	s.rows = m.renew(s.rows, by, c.marks, which)
	c.marked = false
	if heard {
		c.leased = has != 0
		for r := range c.rows {
			if which.has(r) {
				c.rows[r].mine = has.has(r)
			}
		}
	}
	s.tidy(i)
	return s.trespass(i, before, 0)
}
