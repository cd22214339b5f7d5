package exactmodel

import "fmt"

// lapse is the end of leases. That of a relay which lives is one that has stood still.
func (m *model) lapse(n *moves) {
	var seen [mostRows]token
	for r, row := range n.from.rows {
		if row.owner == 0 || row.expired || row.owner == seen[0] || row.owner == seen[1] {
			continue
		}
		seen[r] = row.owner
		is := step{who: nobody, what: fmt.Sprintf("the lease of %s ends", row.owner)}
		if m.lives(n.from, row.owner) {
			is.costs = 1
		}
		n.add(is, func(w *world) string {
			for r := range w.rows {
				if w.rows[r].owner == row.owner {
					w.rows[r].expired = true
				}
			}
			return ""
		})
	}
}

// lives is true for a claim that a worker knows of.
func (m *model) lives(w world, t token) (is bool) {
	for p := range w.processes {
		if m.slotOf(p) == t.slot() {
			w.processes[p].worker.heard.rename(func(heard token) token {
				is = is || heard == t
				return heard
			})
		}
	}
	return is
}

// kill ends a relay's process, and starts another.
func (m *model) kill(n *moves, p int) {
	n.add(step{who: p, what: "is killed, and starts anew", costs: 1, kills: true}, func(w *world) string {
		w.die(p)
		if n.from.processes[p] == w.processes[p] {
			w.faults = n.from.faults // it has not done anything yet
		}
		return ""
	})
}

func (w *world) die(p int) {
	w.processes[p] = process{}
	for s := range w.slots {
		if w.slots[s].open.open && w.slots[s].open.by == uint8(p) { //nolint:gosec // two relays
			w.slots[s].open.by = nobody
		}
		if w.slots[s].holder == uint8(p) { //nolint:gosec // two relays
			w.slots[s].holder = nobody
		}
	}
}
