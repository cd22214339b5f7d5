package exactmodel

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// exploration is a breadth-first walk through all that can happen, so that what it finds first is
// as short as can be.
type exploration struct {
	*model
	nodes []node
	seen  map[world]struct{}
	moves int
	ends  map[world]struct{} // from which an end is known to be reached
}

type node struct {
	world
	parent int32
}

// explore looks at every world that can be reached, and ends with the first invariant that is
// broken, and how.
func (m *model) explore() (e *exploration, broken, trace string) {
	start := m.start().canonical()
	e = &exploration{model: m, nodes: []node{{start, -1}}, seen: map[world]struct{}{start: {}}, ends: map[world]struct{}{}}
	for at := 0; at < len(e.nodes); at++ {
		from := e.nodes[at].world
		if broken, steps := e.drains(from); broken != "" {
			way, w := e.way(at)
			return e, broken, tell(way) + "then, without faults:\n" + tell(e.calm(w, steps))
		}
		for _, to := range m.next(from) {
			e.moves++
			if to.broken != "" {
				way, w := e.way(at)
				for _, to := range m.next(w) {
					if to.broken != "" {
						way = append(way, to)
						break
					}
				}
				return e, way[len(way)-1].broken, tell(way)
			}
			w := to.world.canonical()
			if _, ok := e.seen[w]; !ok {
				e.seen[w] = struct{}{}
				e.nodes = append(e.nodes, node{w, int32(at)}) //nolint:gosec // far fewer worlds
			}
		}
	}
	return e, "", ""
}

// way tells how a node was reached. Claims keep their names, so it goes the way anew instead of
// along the canonical worlds.
func (e *exploration) way(at int) (way []move, w world) {
	var path []world
	for i := int32(at); e.nodes[i].parent >= 0; i = e.nodes[i].parent { //nolint:gosec // far fewer worlds
		path = append(path, e.nodes[i].world)
	}
	w = e.start()
	for i := len(path) - 1; i >= 0; i-- {
		for _, to := range e.next(w) {
			if to.world.canonical() == path[i] {
				w = to.world
				way = append(way, to)
				break
			}
		}
	}
	return way, w
}

// calm goes on from a world without faults.
func (e *exploration) calm(w world, steps int) (way []move) {
	w.faults = 0
	for range steps {
		next := e.first(w)
		if len(next) == 0 {
			break
		}
		way = append(way, next[0])
		w = next[0].world
	}
	return way
}

func tell(way []move) string {
	var b strings.Builder
	for i, to := range way {
		fmt.Fprintf(&b, "  %2d. %-64s %s\n", i+1, to.step, to.world)
	}
	return b.String()
}

// longest is more steps than any way to an end takes.
const longest = 300

// drains tells whether all is exported in the end, from a world on, when nothing goes wrong any
// more; else what is broken after how many steps.
func (e *exploration) drains(w world) (broken string, steps int) {
	w.faults = 0
	w = w.canonical()
	var passed []world
	for !w.done() {
		if _, ok := e.ends[w]; ok {
			break
		}
		if passed = append(passed, w); len(passed) > longest {
			return fmt.Sprintf("end: not all is exported after %d steps without faults", longest), longest
		}
		next := e.first(w)
		if len(next) == 0 {
			return "end: nothing can happen any more, and not all is exported", len(passed)
		}
		if next[0].broken != "" {
			return next[0].broken, len(passed)
		}
		w = next[0].world.canonical()
	}
	for _, w := range passed {
		e.ends[w] = struct{}{}
	}
	return "", 0
}

// done is true when all is exported.
func (w world) done() bool {
	for _, row := range w.rows {
		if !row.exported {
			return false
		}
	}
	return true
}

// check explores a model, and fails on what it finds.
func (m *model) check(t *testing.T) {
	t.Helper()
	begin := time.Now()
	e, broken, trace := m.explore()
	if broken != "" {
		t.Fatalf("%s\n%s", broken, trace)
	}
	if m.marked == 0 || m.released == 0 {
		t.Errorf("the ledger had %d claims marked and %d released: nothing was tried", m.marked, m.released)
	}
	t.Logf("%d states, %d moves, %d questions to the relay, in %s; %d states on the way to an end; the ledger had claims marked by %d moves and released by %d",
		len(e.nodes), e.moves, len(m.asked), time.Since(begin).Round(time.Millisecond), len(e.ends), m.marked, m.released)
}
