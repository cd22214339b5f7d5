package exactmodel

import (
	"fmt"
	"testing"
)

// model is what is explored: two relays with a worker each, three rows, and what may go wrong.
type model struct {
	*oracle
	*outbox
	same   bool  // both relays have the same slot
	bare   bool  // the ledger is empty at first
	late   bool  // writes that failed may be carried out later
	kills  bool  // no other fault than that a relay is killed
	mixes  bool  // a transaction may be of several claims
	done   mask  // rows that are exported at first
	faults uint8 // at most
	mistakes

	buffer           []move // of next, used again
	marked, released int    // moves by which the ledger decided so
}

func newModel(t *testing.T) *model {
	return &model{oracle: newOracle(t), outbox: newOutbox(t)}
}

// slotOf is the slot of a relay's worker.
func (m *model) slotOf(p int) int {
	if m.same {
		return 0
	}
	return p
}

func (m *model) start() (w world) {
	w.faults = m.faults
	for r := range w.rows {
		w.rows[r].visible, w.rows[r].exported = m.done.has(r), m.done.has(r)
	}
	for s := range w.slots {
		w.slots[s].holder = nobody
		if !m.bare && (s == 0 || !m.same) {
			w.slots[s].last.token = newToken(s, initial)
		}
	}
	return w
}

// step names what happens from one world to the next.
type step struct {
	who   int // a relay, or nobody
	help  bool
	call  call
	what  string
	costs uint8
	kills bool
}

func (s step) String() string {
	who := ""
	if s.who < nobody {
		who = fmt.Sprintf("relay %d: ", s.who)
		if s.help {
			who = fmt.Sprintf("relay %d helps: ", s.who)
		}
	}
	c := ""
	if s.call.kind != none {
		c = s.call.kind.String()
		switch s.call.kind {
		case fence, last:
			c += fmt.Sprintf(" S%d", s.call.slot)
		case commit:
			c += fmt.Sprintf(" %s with%s", s.call.token, s.call.marks)
		case settle:
			c += fmt.Sprintf(" %s", s.call.token)
			if s.call.marks != 0 {
				c += fmt.Sprintf(", marks%s", s.call.marks)
			}
			if s.call.freed != 0 {
				c += fmt.Sprintf(", releases%s", s.call.freed)
			}
		}
	}
	if c != "" && s.what != "" {
		c += ", "
	}
	return who + c + s.what
}

type move struct {
	step
	world
	broken string // the invariant that the step breaks
}

// moves collects what may happen next.
type moves struct {
	*model
	from world
	to   []move
	one  bool  // the first that changes anything is enough
	same world // from, if so, canonical
}

// add notes one thing that may happen, if there is still room for the fault that it is.
func (n *moves) add(s step, change func(w *world) (broken string)) {
	if s.costs > n.from.faults || n.one && len(n.to) > 0 || n.kills && s.costs > 0 && !s.kills {
		return
	}
	to := n.from
	to.faults -= s.costs
	broken := change(&to)
	if broken == "" && (to == n.from || n.one && to.canonical() == n.same) {
		return
	}
	for r, row := range to.rows {
		if broken == "" && row.exported && !row.visible {
			broken = fmt.Sprintf("lost: row %s is marked exported, and its event was never committed", names[r])
		}
	}
	n.to = append(n.to, move{s, to, broken})
}

// next gives all that may happen. What makes progress comes first, time last.
func (m *model) next(w world) []move {
	n := &moves{model: m, from: w, to: m.buffer[:0]}
	n.collect()
	m.buffer = n.to
	return n.to
}

// first gives the first thing that may happen and changes anything, or none.
func (m *model) first(w world) []move {
	n := &moves{model: m, from: w, one: true, same: w.canonical()}
	n.collect()
	return n.to
}

func (n *moves) collect() {
	m := n.model
	for p := range relays {
		m.work(n, p)
	}
	m.strays(n)
	for p := range relays {
		m.help(n, p)
	}
	m.lapse(n)
	for p := range relays {
		m.kill(n, p)
	}
}
