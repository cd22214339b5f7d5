package exactmodel

import (
	"fmt"
	"testing"
)

// oracle tells what a thread of a relay does next, from all that it has heard, by having a
// [relay.Relay] hear it. It remembers.
type oracle struct {
	*testing.T
	known map[question]call // by tokens as they are
	asked map[question]call // by tokens numbered as they come
}

type question struct {
	slot   int
	helper bool
	ready  bool
	heard  history
}

func newOracle(t *testing.T) *oracle {
	return &oracle{T: t, known: map[question]call{}, asked: map[question]call{}}
}

func (o *oracle) ask(slot int, helper bool, t thread) call {
	q := question{slot, helper, t.ready, t.heard}
	if c, ok := o.known[q]; ok {
		return c
	}
	// Slots and tokens are named as they come, so that fewer questions are asked.
	var to, from [256]token
	var count [relays]int
	plain := question{0, helper, t.ready, t.heard.rename(func(t token) token {
		if to[t] == 0 {
			s, n := t.slot()^slot, initial
			if t.number() != initial {
				count[s]++
				n = count[s]
			}
			to[t] = newToken(s, n)
			from[to[t]] = t
		}
		return to[t]
	})}
	c, ok := o.asked[plain]
	if !ok {
		c = converse(o.T, plain)
		o.asked[plain] = c
	}
	if c.token != 0 {
		if c.token = from[c.token]; c.token == 0 {
			c.token = newToken(slot, initial) // of the first entry
		}
	}
	c.slot ^= slot
	o.known[q] = c
	return c
}

func (q question) String() string {
	return fmt.Sprintf("helper %t, ready %t, heard %+v", q.helper, q.ready, q.heard.answers())
}
