package model

import (
	"strings"
	"testing"
)

// TestProtocol explores small worlds, each with what the others have no room for.
func TestProtocol(t *testing.T) {
	for name, m := range map[string]model{
		"two operations": {
			layout: layout{0, 1, 0}, claims: 2, faults: 2, refusals: []answer{failed},
		},
		"two operations, with an operator": {
			layout: layout{0, 1, 0, 1}, claims: 2, faults: 1, refusals: []answer{rowFault, failed}, operator: true,
		},
		"three claims of three rows": {
			layout: layout{0, 0, 0}, claims: 3, faults: 2, refusals: []answer{rowFault, failed},
		},
		"every refusal": {
			layout: layout{0, 0}, claims: 2, faults: 3, refusals: []answer{rowFault, environment, failed, notAttempted}, operator: true,
		},
		"relays that end again and again": {
			layout: layout{0, 0}, claims: 2, faults: 7, only: kills, strict: true,
		},
		"an exporter in Python": {
			layout: layout{0, 0, 1}, claims: 1, faults: 2, refusals: []answer{rowFault, failed}, python: true,
		},
		"dead letters": {
			layout: layout{0, 0}, claims: 2, faults: 3, refusals: []answer{rowFault}, letters: true,
		},
		"a restore": {
			layout: layout{0, 0}, claims: 2, faults: 3, refusals: []answer{rowFault, failed}, restores: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m.rules = realRules(t, m.layout)
			m.check(t)
		})
	}
}

func kills(s step) bool { return s.kills }
func loses(s step) bool { return s.loses }

// TestInnocentRow: all worlds hold that a row is parked as one that ends relays only after
// three claims of it alone ran out. Under these conditions relays have ended with all three.
func TestInnocentRow(t *testing.T) {
	for name, m := range map[string]model{
		"relays can take the marks off": {
			claims: 2, faults: 7, refusals: []answer{failed}, only: func(s step) bool { return !s.lapses },
		},
		"answers to claims are lost": {
			claims: 1, faults: 12, refusals: []answer{failed}, only: loses,
		},
		"one relay that lives": {
			claims: 1, faults: 8, refusals: []answer{failed}, lives: true, only: func(s step) bool { return !s.lapses },
		},
	} {
		t.Run(name, func(t *testing.T) {
			m.layout, m.strict = layout{0}, true
			m.rules = realRules(t, m.layout)
			m.check(t)
		})
	}
}

// TestNotInnocentEnough: what is not promised. A row can be parked that has ended no relay, if
// none can take the marks off its token, again and again, before the lease ends.
func TestNotInnocentEnough(t *testing.T) {
	m := model{layout: layout{0}, claims: 1, faults: 13, lives: true, strict: true}
	m.rules = realRules(t, m.layout)
	e, broken, trace := m.explore((&calm{model: &m, ends: map[state]struct{}{}}).drains)
	if !strings.HasPrefix(broken, "I6") {
		t.Fatalf("in %d states it broke %q, want I6\n%s", len(e.nodes), broken, trace)
	}
	t.Logf("%s\n%s", broken, trace)
}
