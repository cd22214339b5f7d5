package model

// records are those that were sent by claims which are no more: one of each operation
// may arrive next.
func (m *model) records(n *moves) {
	seen := map[int]bool{}
	for r, row := range n.from.rows {
		if row.loose && !seen[m.layout[r]] {
			seen[m.layout[r]] = true
			n.add(step{what: "a forgotten record arrives", claim: -1, row: r}, func(s *state) string {
				return m.arrive(s, r, row.reborn)
			})
		}
	}
}

// leases end by the database's clock, for all rows that one claim holds of an
// operation: never before they do as the relay counts, but for rows that it does not
// renew any more.
func (m *model) leases(n *moves) {
	for operation := range m.operations() {
		for by := gone; by < first+mostClaims; by++ {
			is := step{what: [...]string{
				gone: "the lease of a forgotten claim ends", python: "the lease of the Python exporter ends",
				first: "the lease of claim 0 ends", first + 1: "the lease of claim 1 ends", first + 2: "the lease of claim 2 ends",
			}[by], claim: -1, row: -1}
			over := mask(1<<len(m.layout) - 1)
			if by >= first && n.from.claims[by-first].leased {
				is.costs, is.lapses = 1, true
				for r, e := range n.from.claims[by-first].rows {
					if e.answer.waits() || e.answer == unsent {
						over &^= 1 << r
					}
				}
			}
			m.lease(n, is, operation, by, over)
		}
	}
}

func (m *model) lease(n *moves, is step, operation int, by owner, over mask) {
	has := false
	for r, o := range m.layout {
		has = has || o == operation && n.from.rows[r].owner == by && n.from.rows[r].leased && over.has(r)
	}
	if !has {
		return
	}
	n.add(is, func(s *state) string {
		for r, o := range m.layout {
			if row := &s.rows[r]; o == operation && row.owner == by && over.has(r) {
				row.leased = false
			}
		}
		return ""
	})
}

// time brings delayed rows to their due time, those of one operation together.
func (m *model) time(n *moves) {
	for _, d := range []due{soon, aDay} {
		what := "a retry delay passes"
		if d == aDay {
			what = "a day passes"
		}
		for operation := range m.operations() {
			for r, o := range m.layout {
				if o == operation && n.from.rows[r].due == d {
					n.add(step{what: what, claim: -1, row: r, passes: true}, func(s *state) string {
						for i, o := range m.layout {
							if o == operation && s.rows[i].due == d {
								s.rows[i].due = now
							}
						}
						return ""
					})
					break
				}
			}
		}
	}
}

// others are those who work on the outbox too.
func (m *model) others(n *moves) {
	if m.operator {
		for r, row := range n.from.rows {
			if row.due == parked && !row.exported && !row.leased {
				m.unpark(n, r)
			}
		}
	}
	if m.python {
		m.exporter(n)
	}
	if m.restores {
		m.restore(n)
	}
}

// unpark is an operator's retry or discard, as store/sql/parked_end.sql has it.
func (m *model) unpark(n *moves, r int) {
	n.add(step{what: "an operator retries the parked row", claim: -1, row: r, unparks: true}, func(s *state) string {
		s.rows[r].due = now
		m.unparkBehind(s, r)
		return ""
	})
	n.add(step{what: "an operator discards the parked row", claim: -1, row: r, unparks: true}, func(s *state) string {
		row := &s.rows[r]
		row.exported, row.discarded, row.owner = true, true, nobody
		m.unparkBehind(s, r)
		return ""
	})
}

func (m *model) unparkBehind(s *state, r int) {
	for later := r + 1; later < len(m.layout); later++ {
		if row := &s.rows[later]; m.layout[later] == m.layout[r] && !row.exported && !row.leased && row.due != parked {
			row.due = now
		}
	}
}

// exporter is Aksara's own: it takes any due row, one at a time, and guards what it
// writes by its name.
func (m *model) exporter(n *moves) {
	for r := range m.layout {
		row := n.from.rows[r]
		switch {
		case row.owner == python && !row.exported:
			n.add(step{what: "the Python exporter delivers and marks", claim: -1, row: r}, func(s *state) string {
				to := &s.rows[r]
				to.exported, to.owner, to.leased = true, nobody, false
				return m.arrive(s, r, row.reborn)
			})
			n.add(step{what: "the Python exporter fails", claim: -1, row: r, costs: 1}, func(s *state) string {
				to := &s.rows[r]
				to.due, to.owner, to.leased = soon, nobody, false
				return ""
			})
		case !row.exported && !row.leased && row.due == now:
			n.add(step{what: "the Python exporter takes a row", claim: -1, row: r, costs: 1}, func(s *state) string {
				to := &s.rows[r]
				to.owner, to.leased, to.marks, to.alone, to.deaths = python, true, 0, 0, 0
				to.attempts++
				return ""
			})
		}
	}
}

// restore puts the last operation back to before its rows were written; other events
// have got their ids since.
func (m *model) restore(n *moves) {
	last := m.operations() - 1
	n.add(step{what: "the database is restored, and the ids of the last operation are used again", claim: -1, row: -1, costs: 1}, func(s *state) string {
		for r, o := range m.layout {
			if o == last && !s.rows[r].reborn {
				s.rows[r] = row{reborn: true}
			}
		}
		return ""
	})
}
