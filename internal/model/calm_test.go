package model

import (
	"fmt"
)

// calm lets a state come to its end when nothing goes wrong any more.
type calm struct {
	*model
	ends map[state]struct{} // from which an end is known to be reached
	left int                // claims that are left on exported rows at the ends
	way  []move             // what happened since the state that is looked at
}

// longest is more steps than any way to an end takes.
const longest = 200

// drains tells whether all is delivered in the end, from a state on, and also if all
// relays were killed now, where they can be, and begin anew: all but what waits behind a parked row. When
// an operator retries those, the rest is too.
func (c *calm) drains(s state) (broken, trace string) {
	s.faults = 0
	if broken := c.drain(s); broken != "" {
		return broken, "then, without faults:\n" + c.tellAll(c.way)
	}
	killed := false
	for i := range s.claims {
		if s.claims[i].stage != free && !c.lives {
			c.kill(&s, i)
			killed = true
		}
	}
	if !killed {
		return "", ""
	}
	if broken := c.drain(s); broken != "" {
		return broken, "then all relays are killed, and without faults:\n" + c.tellAll(c.way)
	}
	return "", ""
}

func (c *calm) drain(s state) string {
	var way []state
	c.way = c.way[:0]
	for s = s.canonical(); ; {
		if _, ok := c.ends[s]; ok {
			break
		}
		way = append(way, s)
		if len(way) > longest {
			return fmt.Sprintf("I5: not at an end after %d steps without faults: %s", longest, describe(s.rows[:len(c.layout)]))
		}
		if c.quiet(s) {
			retried := c.retried(s)
			if retried == s {
				c.leftovers(s)
				break
			}
			c.way = append(c.way, move{step: step{what: "an operator retries all parked rows", claim: -1, row: -1}, state: retried})
			s = retried
			continue
		}
		next, broken := c.step(s)
		if broken != "" {
			return broken
		}
		s = next
	}
	for _, s := range way {
		c.ends[s] = struct{}{}
	}
	return ""
}

// leftovers counts claims on exported rows that nobody will take off any more.
func (c *calm) leftovers(s state) {
	for r := range c.layout {
		if s.rows[r].owner != nobody {
			c.left++
		}
	}
}

// quiet is true when no relay has anything to do, and no row waits but behind a
// parked one.
func (c *calm) quiet(s state) bool {
	for i := range s.claims {
		if s.claims[i].stage != free {
			return false
		}
	}
	for r := range c.layout {
		if row := s.rows[r]; !row.exported && !c.waits(s, r) {
			return false
		}
	}
	return true
}

// waits is true for a parked row and those behind it.
func (c *calm) waits(s state, r int) bool {
	for i := range r + 1 {
		if c.layout[i] == c.layout[r] && !s.rows[i].exported {
			return s.rows[i].due == parked
		}
	}
	return false
}

// retried is what becomes of a quiet state when all parked rows are retried.
func (c *calm) retried(s state) state {
	for r := range c.layout {
		if s.rows[r].due == parked && !s.rows[r].exported {
			s.rows[r].due, s.rows[r].leased = now, false
			c.unparkBehind(&s, r)
		}
	}
	return s.canonical()
}

// step takes the first step that changes anything. Time comes last, and only for rows
// that do not wait behind a parked one.
func (c *calm) step(s state) (state, string) {
	for _, to := range c.next(s) {
		if to.broken != "" {
			c.way = append(c.way, to)
			return s, to.broken
		}
		if to.unparks || to.passes && c.waits(s, to.row) {
			continue
		}
		if t := to.state.canonical(); t != s {
			c.way = append(c.way, to)
			return t, ""
		}
	}
	return s, "I5: nothing can happen any more: " + describe(s.rows[:len(c.layout)])
}
