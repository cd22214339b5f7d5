package model

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// exploration is a breadth-first walk through all that can happen, so that what it
// finds first is as short as can be.
type exploration struct {
	*model
	nodes []node
	seen  map[state]struct{}
	moves int
}

type node struct {
	state  state
	parent int32
}

// explore looks at every state that can be reached, calls visit with each, and ends
// with the first invariant that is broken, and how.
func (m *model) explore(visit func(state) (broken, trace string)) (e *exploration, broken, trace string) {
	start := m.start().canonical()
	e = &exploration{model: m, nodes: []node{{start, -1}}, seen: map[state]struct{}{start: {}}}
	for at := 0; at < len(e.nodes); at++ {
		from := e.nodes[at].state
		if broken, way := visit(from); broken != "" {
			return e, broken, e.trace(at, nil) + way
		}
		for _, to := range m.next(from) {
			e.moves++
			if to.broken != "" {
				return e, to.broken, e.trace(at, &to)
			}
			s := to.state.canonical()
			if _, ok := e.seen[s]; !ok {
				e.seen[s] = struct{}{}
				e.nodes = append(e.nodes, node{s, int32(at)}) //nolint:gosec // far fewer states
			}
		}
	}
	return e, "", ""
}

// trace tells how a node was reached, and what came after it. Claims keep their names,
// so it goes the way anew instead of along the canonical states.
func (e *exploration) trace(at int, last *move) string {
	var path []state
	for i := int32(at); e.nodes[i].parent >= 0; i = e.nodes[i].parent { //nolint:gosec // far fewer states
		path = append(path, e.nodes[i].state)
	}
	var b strings.Builder
	s := e.start()
	for i := len(path) - 1; i >= 0; i-- {
		for _, to := range e.next(s) {
			if to.state.canonical() == path[i] {
				s = to.state
				e.tell(&b, to)
				break
			}
		}
	}
	if last != nil {
		for _, to := range e.next(s) {
			if to.broken != "" {
				e.tell(&b, to)
				break
			}
		}
	}
	return b.String()
}

func (m *model) tell(b *strings.Builder, to move) {
	fmt.Fprintf(b, "  %-60s %s\n", to.step, describe(to.rows[:len(m.layout)]))
}

func (m *model) tellAll(way []move) string {
	var b strings.Builder
	for _, to := range way {
		m.tell(&b, to)
	}
	return b.String()
}

// describe gives a table in one line: of each row whose it is, when it is due, and
// whether it has arrived.
func describe(rows []row) string {
	var b strings.Builder
	for i, r := range rows {
		fmt.Fprintf(&b, "| %d ", i)
		switch {
		case r.discarded:
			b.WriteString("discarded")
		case r.exported:
			b.WriteString("exported")
		default:
			b.WriteString([...]string{"due", "delayed", "delayed a day", "parked"}[r.due])
		}
		if r.owner != nobody {
			fmt.Fprintf(&b, " of %s", r.owner)
		}
		if r.owner != nobody && !r.leased {
			b.WriteString(" (lease over)")
		}
		if r.arrived {
			b.WriteString(" arrived")
		}
		if r.buried {
			b.WriteString(" buried")
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// String is who that is.
func (o owner) String() string {
	return [...]string{"nobody", "a forgotten claim", "the Python exporter", "claim 0", "claim 1", "claim 2"}[o]
}

// check explores a model, and fails on what it finds.
func (m *model) check(t *testing.T) {
	t.Helper()
	begin := time.Now()
	c := &calm{model: m, ends: map[state]struct{}{}}
	e, broken, trace := m.explore(c.drains)
	if broken != "" {
		t.Fatalf("%s\n%s", broken, trace)
	}
	t.Logf("%d states, %d moves, %d questions to the relay, in %s; %d states on the way to an end, %d claims left on exported rows",
		len(e.nodes), e.moves, len(m.asked.answers), time.Since(begin).Round(time.Millisecond), len(c.ends), c.left)
}
