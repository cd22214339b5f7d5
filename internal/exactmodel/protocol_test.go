package exactmodel

import (
	"flag"
	"testing"
)

// lengthy asks for worlds that take minutes and much memory.
var lengthy = flag.Bool("lengthy", false, "explore larger worlds too")

const (
	rowA1 mask = 1 << iota
	rowA2
	rowB1
)

// worlds are what is explored. What is exported at first makes a world smaller.
var worlds = []struct {
	name string
	long bool
	make func(m *model)
}{
	{"a slot each", false, func(m *model) { m.faults = 1 }},
	{"a slot each, two faults", false, func(m *model) { m.faults, m.done = 2, rowA2|rowB1 }},
	{"a slot each, claims are mixed", false, func(m *model) { m.faults, m.done, m.mixes = 1, rowB1, true }},
	{"a slot each, writes come late", false, func(m *model) { m.faults, m.done, m.late = 1, rowA1, true }},
	{"a slot each, empty ledger", false, func(m *model) { m.faults, m.done, m.bare = 1, rowB1, true }},
	{"one slot", false, func(m *model) { m.same = true }},
	{"one slot, a fault", false, func(m *model) { m.faults, m.done, m.same = 1, rowB1, true }},
	{"one slot, two operations, killed", false, func(m *model) { m.faults, m.done, m.same, m.kills = 1, rowA1, true, true }},
	{"one slot, empty ledger", false, func(m *model) { m.faults, m.done, m.same, m.bare = 1, rowA2|rowB1, true, true }},
	{"one slot, two operations", true, func(m *model) { m.faults, m.done, m.same = 1, rowA1, true }},
	{"one slot, two faults", true, func(m *model) { m.faults, m.done, m.same = 2, rowA2|rowB1, true }},
	{"one slot, writes come late", true, func(m *model) { m.faults, m.done, m.same, m.late = 1, rowB1, true, true }},
	{"a slot each, two rows and faults", true, func(m *model) { m.faults, m.done = 2, rowB1 }},
	{"one slot, all rows", true, func(m *model) { m.faults, m.same = 1, true }},
}

// TestProtocol explores what two relays can come to.
func TestProtocol(t *testing.T) {
	for _, world := range worlds {
		if world.long && !*lengthy {
			continue
		}
		t.Run(world.name, func(t *testing.T) {
			m := newModel(t)
			world.make(m)
			m.check(t)
		})
	}
}
