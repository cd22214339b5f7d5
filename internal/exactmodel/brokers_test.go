package exactmodel

import (
	"fmt"
	"math/bits"
)

// take is a relay taking its slot, or fencing another: whatever is open there is aborted.
func (m *model) take(w *world, p int, c call) answer {
	if m.noFence {
		return answer{}
	}
	m.abort(w, c.slot)
	w.slots[c.slot].holder = nobody
	if c.kind == open && !m.lazy {
		w.slots[c.slot].holder = uint8(p) //nolint:gosec // two relays
	}
	return answer{}
}

// abort aborts what is open, and tells who waits for it.
func (m *model) abort(w *world, s int) {
	by := w.slots[s].open.by
	if !w.close(s) || by == nobody {
		return
	}
	m.hear(w, int(by), false, answer{outcome: fenced})
}

// close ends a transaction; false if none was open.
func (w *world) close(s int) bool {
	was := w.slots[s].open.open
	w.slots[s].open = transaction{}
	w.slots[1-s].older = entry{}
	return was
}

// lookUp gives the last entry.
func (m *model) lookUp(w *world, p int, help bool, s int) answer {
	e := w.slots[s].last
	t := w.thread(p, help)
	switch {
	case m.early:
		e, t.early = t.early, entry{}
	case m.stable && w.slots[1-s].open.hides:
		e = w.slots[s].older
	}
	switch {
	case m.listedOnly && !m.listed(*t, e.token):
		e.rows = 0
	case m.releasesAll:
		for r := range w.rows {
			if row := &w.rows[r]; row.owner != 0 && row.owner.slot() == s && row.owner != e.token {
				row.owner, row.expired = 0, false
			}
		}
	}
	return one(e.token, e.rows)
}

func (w *world) thread(p int, help bool) *thread {
	if help {
		return &w.processes[p].helper
	}
	return &w.processes[p].worker
}

// commits is a relay that commits: it sends, and asks for the commit; the broker carries it out or
// not, and the relay learns of it or not.
func (m *model) commits(n *moves, p int, c call) {
	is := step{who: p, call: c}
	if !n.from.processes[p].waits {
		m.sends(n, p, c, is)
		return
	}
	is.what = "is carried out"
	n.add(is, func(w *world) string {
		broken := m.carryOut(w, c.slot)
		m.hear(w, p, false, answer{})
		return broken
	})
	is.costs, is.what = 1, "is carried out, and the answer is lost"
	n.add(is, func(w *world) string {
		broken := m.carryOut(w, c.slot)
		m.unanswered(w, p, c)
		return broken
	})
	is.what = "waits for no answer any more"
	n.add(is, func(w *world) string {
		w.slots[c.slot].open.by = nobody
		m.unanswered(w, p, c)
		return ""
	})
	is.what = "the brokers abort it, since it took too long"
	n.add(is, func(w *world) string {
		w.slots[c.slot].holder = nobody
		m.abort(w, c.slot)
		return ""
	})
}

// sends is the first half of it.
func (m *model) sends(n *moves, p int, c call, is step) {
	begin := func(w *world, rows mask) string {
		s := &w.slots[c.slot]
		if m.lazy {
			m.take(w, p, call{kind: fence, slot: c.slot})
			s.holder = uint8(p) //nolint:gosec // two relays
		}
		if s.holder != uint8(p) && !m.noFence { //nolint:gosec // two relays
			m.hear(w, p, false, answer{outcome: fenced})
			return ""
		}
		w.close(c.slot)
		s.open = transaction{open: true, by: uint8(p), rows: rows, twice: c.again, entry: entry{c.token, c.marks}} //nolint:gosec // two relays
		w.processes[p].waits = true
		return ""
	}
	is.what = "sends"
	n.add(is, func(w *world) string { return begin(w, c.marks) })
	is.costs = 1
	if m.partial && c.marks != 0 {
		is.what = "sends, and a record fails"
		n.add(is, func(w *world) string { return begin(w, c.marks&^(1<<(bits.Len8(uint8(c.marks))-1))) })
	}
	is.what = "nothing can be sent"
	n.add(is, func(w *world) string {
		w.slots[c.slot].spent(p)
		m.hear(w, p, false, answer{outcome: failed})
		return ""
	})
}

// spent ends the use of a relay's session: after an error it may commit nothing more.
func (s *slot) spent(p int) {
	if s.holder == uint8(p) { //nolint:gosec // two relays
		s.holder = nobody
	}
}

// unanswered tells a relay that it gets no answer to a commit.
func (m *model) unanswered(w *world, p int, c call) {
	if m.unknown {
		w.rows, _ = m.settle(w.rows, c.token, 0, c.marks)
	}
	w.slots[c.slot].spent(p)
	m.hear(w, p, false, answer{outcome: failed})
}

// carryOut commits what is open. Then consumers see it.
func (m *model) carryOut(w *world, s int) (broken string) {
	sent, slot := w.slots[s].open, &w.slots[s]
	for r := range mostRows {
		if !sent.rows.has(r) {
			continue
		}
		if w.rows[r].visible || sent.twice.has(r) {
			return fmt.Sprintf("twice: row %s is visible again", names[r])
		}
		for earlier := range r {
			if operations[earlier] == operations[r] && !w.rows[earlier].visible {
				return fmt.Sprintf("order: row %s is visible before %s", names[r], names[earlier])
			}
		}
		w.rows[r].visible = true
	}
	if other := &w.slots[1-s].open; m.stable && other.open && !other.hides {
		other.hides, slot.older = true, slot.last
	}
	slot.last = sent.entry
	w.close(s)
	return ""
}

// strays are what is carried out although nobody waits for it.
func (m *model) strays(n *moves) {
	for s := range n.from.slots {
		if sent := n.from.slots[s].open; sent.open && sent.by == nobody {
			n.add(step{who: nobody, what: "a commit that nobody waits for is carried out"}, func(w *world) string {
				return m.carryOut(w, s)
			})
			n.add(step{who: nobody, what: "the brokers abort what nobody waits for", costs: 1}, func(w *world) string {
				w.close(s)
				w.slots[s].holder = nobody
				return ""
			})
		}
	}
	if late := n.from.late; late.kind != none {
		n.add(step{who: nobody, what: "a write that had an error is carried out"}, func(w *world) string {
			w.late = afterwards{}
			if late.kind == claim {
				m.takes(w, late.token.slot(), late.token, mostRows, 0)
			} else {
				w.rows, _ = m.settle(w.rows, late.token, late.marks, late.freed)
			}
			return ""
		})
	}
}
