package model

// claimAny is any claim that may be made now, by the first relay that has none: the
// relays are alike. Also one whose answer is lost: the rows are claimed, and nobody knows.
func (m *model) claimAny(n *moves) {
	i := 0
	for ; i < m.claims && n.from.claims[i].stage != free; i++ {
	}
	if i == m.claims {
		return
	}
	all := len(m.layout)
	for ahead := range m.operations() {
		for _, limit := range []int{1, 2, all} {
			n.add(step{what: [...]string{"", "claims at most one", "claims at most two", "claims all", "claims all"}[limit], claim: i, row: -1}, func(s *state) string {
				return m.take(s, i, limit, ahead)
			})
		}
		m.claimAbandoned(n, i, ahead)
		n.add(step{what: "claims all, and the answer is lost", claim: i, row: -1, costs: 1, loses: true}, func(s *state) string {
			m.takeUnheard(s, all, ahead)
			return ""
		})
	}
}

// claimAbandoned is a claim of rows that were left behind. Their payloads are read when the
// mark is on the token, so until then nothing is sent.
func (m *model) claimAbandoned(n *moves, i, ahead int) {
	n.add(step{what: "claims what was left behind", claim: i, row: -1}, func(s *state) string {
		return m.take(s, i, abandoned, ahead)
	})
	n.add(step{what: "claims what was left behind, and the answer to the mark is lost", claim: i, row: -1, costs: 1, loses: true}, func(s *state) string {
		broken := m.take(s, i, abandoned, ahead)
		m.unread(s, i)
		return broken
	})
	n.add(step{what: "claims what was left behind, and the answer is lost", claim: i, row: -1, costs: 1, loses: true}, func(s *state) string {
		m.takeUnheard(s, abandoned, ahead)
		return ""
	})
}

// unread is a claim that has read nothing of its rows: the first of each operation has failed.
func (m *model) unread(s *state, i int) {
	c, failing := &s.claims[i], map[int]bool{}
	if c.stage == free {
		return
	}
	c.stage = sent
	for r, operation := range m.layout {
		switch {
		case c.rows[r].answer == absent:
		case failing[operation]:
			c.rows[r].answer = notAttempted
		case m.deadly(s, r):
			failing[operation], c.rows[r].answer, s.rows[r].faulted = true, rowFault, true
		default:
			failing[operation], c.rows[r].answer = true, failed
		}
	}
	s.tidy(i)
}

func (m *model) operations() (n int) {
	for _, operation := range m.layout {
		n = max(n, operation+1)
	}
	return n
}

// abandoned is the limit of a claim of rows that were left behind.
const abandoned = 0

func (m *model) take(s *state, i, limit, ahead int) string {
	before := s.rows
	var took mask
	s.rows, took = m.claim(s.rows, limit, ahead, first+owner(i))
	if took == 0 {
		return ""
	}
	c := claim{stage: held, leased: true}
	for r := range s.rows {
		if took.has(r) {
			c.marks, c.former = s.rows[r].marks, before[r].marks
			c.rows[r] = entry{answer: unsent, reborn: s.rows[r].reborn, mine: true}
		}
	}
	c.marked = c.marks > 0
	s.claims[i] = c
	s.tried(took, limit)
	return ""
}

// takeUnheard is a claim whose answer is lost. It adds no mark.
func (m *model) takeUnheard(s *state, limit, ahead int) {
	before := s.rows
	var took mask
	s.rows, took = m.claim(s.rows, limit, ahead, gone)
	if limit != abandoned {
		s.tried(took, limit)
		return
	}
	for r := range s.rows {
		if took.has(r) {
			s.rows[r].marks = m.unheard(before[r], s.rows[r])
		}
	}
}

// tried counts the claims of a row alone.
func (s *state) tried(took mask, limit int) {
	for r := range s.rows {
		switch row := &s.rows[r]; {
		case !took.has(r):
		case limit == abandoned && took == 1<<r:
			row.alone = min(row.alone+1, mostAlone+1)
		default:
			row.alone, row.deaths = 0, 0
		}
	}
}

// misfortune is what befalls a relay: it dies, or its lease ends before it is done.
func (m *model) misfortune(n *moves, i int) {
	if !m.lives {
		n.add(step{what: "the relay is killed", claim: i, row: -1, costs: 1, kills: true}, func(s *state) string {
			m.kill(s, i)
			return ""
		})
	}
	if n.from.claims[i].leased {
		n.add(step{what: "its lease ends, as the relay counts", claim: i, row: -1, costs: 1, lapses: true}, func(s *state) string {
			s.claims[i].leased = false
			for r := range s.claims[i].rows {
				s.claims[i].rows[r].mine = false
			}
			s.tidy(i)
			return ""
		})
	}
}

// kill ends a claim without a word.
func (m *model) kill(s *state, i int) {
	for r := range s.claims[i].rows {
		s.letGo(i, r)
		if row := &s.rows[r]; m.strict && row.owner == first+owner(i) && row.alone > 0 {
			row.deaths = min(row.deaths+1, mostAlone)
		}
	}
	s.end(i)
}

// letGo leaves a record that was sent to itself: it may arrive or not.
func (s *state) letGo(i, r int) {
	e := &s.claims[i].rows[r]
	if e.answer == flying && e.reborn == s.rows[r].reborn && !s.rows[r].arrived {
		s.rows[r].loose = true
	}
}

// end forgets a claim. What it still holds comes back when the lease ends.
func (s *state) end(i int) {
	s.claims[i] = claim{}
	for r := range s.rows {
		if s.rows[r].owner == first+owner(i) {
			s.rows[r].owner = gone
		}
	}
}

// tidy takes a claim on as far as it goes without anything being written.
func (s *state) tidy(i int) {
	c := &s.claims[i]
	open, writing, waits := false, false, false
	for r := range c.rows {
		e := &c.rows[r]
		if e.note == news && (e.answer == unknown || c.stage == late && e.answer.final() && e.answer != delivered) {
			e.note = known // nothing is written about it
		}
		e.mine = e.mine && e.answer.waits()
		open = open || e.answer.open()
		waits = waits || e.answer.waits()
		writing = writing || e.note == settling || e.note == burying || e.note == news && e.answer.final()
	}
	switch {
	case c.stage != sent && c.stage != late || writing:
	case c.stage == sent && c.marked && waits && (!open || !c.leased): // it takes the marks off first
	case !open:
		s.end(i)
	case !c.leased:
		c.stage = late
	}
}
