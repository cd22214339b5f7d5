package exactmodel

// hear has a thread of a relay hear an answer.
func (m *model) hear(w *world, p int, help bool, a answer) {
	proc := &w.processes[p]
	if help {
		proc.helper.heard = proc.helper.heard.with(a)
		if m.ask(m.slotOf(p), true, proc.helper).kind == look {
			proc.helper = thread{} // it keeps nothing until it looks again
		}
		return
	}
	// The flag is read before the slot is taken, or found to be held: until then it does not matter when it is set.
	if proc.stale && (a.outcome != fine || !m.ask(m.slotOf(p), false, proc.worker).taking) {
		proc.stale, a.stale = false, true
	}
	proc.worker.heard = proc.worker.heard.with(m.heardAs(a, m.ask(m.slotOf(p), false, proc.worker).kind))
	proc.waits = false
	c := m.ask(m.slotOf(p), false, proc.worker)
	if c.kind == claim && c.token != 0 && !m.mixes {
		proc.worker.heard = proc.worker.heard.with(one(c.token, 0)) // there is nothing more now
		c = m.ask(m.slotOf(p), false, proc.worker)
	}
	switch {
	case c.kind == claim && c.token == 0:
		proc.worker = thread{ready: true} // it holds the slot, and nothing is undecided
	case c.kind == look && a.outcome != fine && !proc.worker.ready:
		proc.worker = thread{} // it has not had the slot yet
	}
}

// work is what a relay's worker does next.
func (m *model) work(n *moves, p int) {
	s := m.slotOf(p)
	c := m.ask(s, false, n.from.processes[p].worker)
	c.slot = s
	switch c.kind {
	case commit:
		m.commits(n, p, c)
	case claim:
		m.claims(n, p, c)
	default:
		m.port(n, p, false, c)
	}
}

// help is what a relay's helper does next.
func (m *model) help(n *moves, p int) {
	m.port(n, p, true, m.ask(m.slotOf(p), true, n.from.processes[p].helper))
}

// port is a call that is carried out and answered; carried out, and the answer is lost; or fails.
func (m *model) port(n *moves, p int, help bool, c call) {
	is := step{who: p, help: help, call: c}
	if m.early && (c.kind == open || c.kind == fence) {
		if m.looksEarly(n, p, is) {
			return
		}
	}
	n.add(is, func(w *world) string {
		m.hear(w, p, help, m.effect(w, p, help, c))
		return ""
	})
	if help && c.kind == look {
		return // not to look is the same as to fail
	}
	is.costs = 1
	switch c.kind {
	case settle:
		if m.late && n.from.late.kind == none {
			is.what = "has an error, and it is carried out later"
			n.add(is, func(w *world) string {
				w.late = afterwards{settle, c.token, c.marks, c.freed}
				m.hear(w, p, help, answer{outcome: failed})
				return ""
			})
		}
		fallthrough
	case open, fence:
		is.what = "and the answer is lost"
		n.add(is, func(w *world) string {
			m.effect(w, p, help, c)
			m.hear(w, p, help, answer{outcome: failed})
			return ""
		})
	}
	is.what = "which fails"
	n.add(is, func(w *world) string {
		m.hear(w, p, help, answer{outcome: failed})
		return ""
	})
}

// effect carries out a call.
func (m *model) effect(w *world, p int, help bool, c call) answer {
	switch c.kind {
	case look:
		return m.list(w, p, help)
	case open, fence:
		return m.take(w, p, c)
	case last:
		return m.lookUp(w, p, help, c.slot)
	case settle:
		return m.settles(w, p, help, c)
	}
	panic("there is no such call: " + c.kind.String())
}

// list lists claims: all for the helper, and those of its slot for a worker, which leaves out the others.
func (m *model) list(w *world, p int, help bool) (a answer) {
	n := 0
	for r, row := range w.rows {
		if row.owner == 0 || row.exported || !help && row.owner.slot() != m.slotOf(p) {
			continue
		}
		if help && row.expired && row.owner.slot() == m.slotOf(p) {
			w.processes[p].stale = true
		}
		at := 0
		for at < n && a.held[at].token != row.owner {
			at++
		}
		n = max(n, at+1)
		a.held[at] = held{row.owner, a.held[at].rows | 1<<r, row.expired}
	}
	return a
}

// claims is a claim of all that it may take, or of one row.
func (m *model) claims(n *moves, p int, c call) {
	is := step{who: p, call: c}
	limits := []int{c.limit, 1}
	if c.limit == 1 {
		limits = limits[:1]
	}
	for _, limit := range limits {
		for ahead := range 2 {
			if limit > 1 && ahead > 0 {
				continue // it takes them all
			}
			is.what, is.costs = "as many as there are", 0
			if limit == 1 {
				is.what = "at most one"
			}
			n.add(is, func(w *world) string {
				m.hear(w, p, false, m.takes(w, c.slot, c.token, limit, ahead))
				return ""
			})
			is.what, is.costs = is.what+", and the answer is lost", 1
			n.add(is, func(w *world) string {
				if m.takes(w, c.slot, c.token, limit, ahead).held[0].rows == 0 {
					return "" // as if it failed
				}
				m.hear(w, p, false, answer{outcome: failed})
				return ""
			})
		}
	}
	is.costs = 1
	if m.late && n.from.late.kind == none {
		is.what = "has an error, and it is carried out later"
		n.add(is, func(w *world) string {
			t := c.token
			if t == 0 {
				t = w.fresh(c.slot)
			}
			w.late = afterwards{claim, t, all, 0}
			m.hear(w, p, false, answer{outcome: failed})
			return ""
		})
	}
	is.what = "which fails"
	n.add(is, func(w *world) string {
		m.hear(w, p, false, answer{outcome: failed})
		return ""
	})
}

// takes makes a claim.
func (m *model) takes(w *world, slot int, t token, limit, ahead int) answer {
	if t == 0 {
		t = w.fresh(slot)
	}
	before := w.rows
	after, took := m.claim(m.offered(before), t, limit, ahead)
	for r := range after {
		if took.has(r) {
			w.rows[r] = after[r]
		}
	}
	if m.jumps && took == 0 {
		took = w.jump(t)
	}
	return one(t, took)
}

// heardAs leaves out of an answer to a worker what makes no difference to what it does then, so that
// there are fewer states. TestWhatMakesNoDifference sees to it that it makes none.
func (m *model) heardAs(a answer, to kind) answer {
	switch {
	case to == look:
		for i := range a.held {
			a.held[i].expired = false
		}
	case to == settle && a.outcome == fine:
		a.held[0].rows = all
	case a.outcome == fenced:
		a.outcome = failed
	}
	return a
}
