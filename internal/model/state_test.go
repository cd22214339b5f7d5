package model

import "slices"

const (
	mostRows   = 4
	mostClaims = 3
)

// due is when a row comes due, as far as it matters.
type due uint8

const (
	now    due = iota
	soon       // after a retry delay
	aDay       // behind a parked row
	parked     // never
)

// owner is what claimed_by says.
type owner uint8

const (
	nobody owner = iota
	gone         // a claim that no process knows any more
	python       // the exporter in Python
	first        // the first of the model's claims; the others follow
)

// row is one row of the outbox.
type row struct {
	due      due
	owner    owner
	leased   bool  // the lease runs, by the database's clock
	marks    uint8 // of the token, one for each claim in a row of what was left behind
	attempts int8
	exported bool
	reborn   bool // the database was restored, and the id is another event's now
	truth
}

// truth is what only the model knows of a row.
type truth struct {
	discarded bool
	arrived   bool  // the event is in the topic
	buried    bool  // its letter is in the dead-letter topic
	faulted   bool  // it may be parked: the sink has refused it, or it may end relays
	loose     bool  // a record of it may still arrive, and nobody waits for the answer
	alone     uint8 // claims of it alone, in a row, that nobody settled or renewed
	deaths    uint8 // of relays that made those
}

// answer is what has become of one event of a claim.
type answer uint8

const (
	absent       answer = iota // the claim does not hold the row
	unsent                     // not handed to the sink yet
	flying                     // sent: it may arrive or be refused
	landed                     // it arrived, and the answer is outstanding
	blocked                    // behind one that was refused; the answer is outstanding
	delivered                  // the rest are answers
	rowFault                   //
	environment                //
	failed                     //
	notAttempted               //
	unknown                    //
)

func (a answer) open() bool  { return a >= flying && a <= blocked }
func (a answer) final() bool { return a >= delivered }

// waits is true if the event may have arrived or still arrive, and nobody knows.
func (a answer) waits() bool { return a.open() || a == unknown }

// note is how far the relay is with an answer.
type note uint8

const (
	news     note = iota
	settling      // its verdict is being written, perhaps again and again
	burying       // its letter is under way
	known         // dealt with
)

// entry is one row as a claim holds it.
type entry struct {
	answer answer
	note   note
	reborn bool // the row that it is about is the one after the restore
	mine   bool // the relay may think that the claim still holds the row
}

// stage is how far a claim is.
type stage uint8

const (
	free stage = iota // no claim
	held              // claimed, nothing sent
	sent
	late // the lease is over, answers are outstanding
)

// claim is one claim of a living relay. Relays share nothing but the database and the
// topic, and the claims of one relay share no more than those of two: so each claim
// stands for a relay of its own.
type claim struct {
	stage  stage
	leased bool   // the lease runs, as the relay counts
	marked bool   // the relay has not tried yet to take the marks off its token
	marks  uint8  // of its token
	former uint8  // marks of those that ran out before it
	letter answer // to the letters of what is being settled; absent if none was sent
	rows   [mostRows]entry
}

// mask is a set of rows.
type mask uint8

func (m mask) has(i int) bool { return m&(1<<i) != 0 }

func (c *claim) mask() (m mask) {
	for i := range c.rows {
		if c.rows[i].answer != absent {
			m |= 1 << i
		}
	}
	return m
}

// any tells whether an entry is like that.
func (c *claim) any(is func(entry) bool) bool { return slices.ContainsFunc(c.rows[:], is) }

type (
	table  = [mostRows]row
	claims = [mostClaims]claim
)

// state is everything at one moment.
type state struct {
	rows   table
	claims claims
	faults uint8 // how much may still go wrong
}

// canonical gives one of several states that differ in nothing that matters: the
// names of the claims, and what is kept about rows that are at their end.
func (s state) canonical() state {
	for i := range s.rows {
		r := &s.rows[i]
		r.loose = r.loose && !r.arrived
		if r.owner == nobody {
			r.marks, r.alone, r.deaths = 0, 0, 0
		}
		if r.exported {
			r.due, r.attempts, r.faulted, r.alone, r.deaths = now, 0, false, 0, 0
		}
	}
	for i := 1; i < mostClaims; i++ {
		for j := i; j > 0 && s.claims[j].before(&s.claims[j-1]); j-- {
			s.swap(j, j-1)
		}
	}
	return s
}

func (s *state) swap(i, j int) {
	s.claims[i], s.claims[j] = s.claims[j], s.claims[i]
	for r := range s.rows {
		switch s.rows[r].owner {
		case first + owner(i):
			s.rows[r].owner = first + owner(j)
		case first + owner(j):
			s.rows[r].owner = first + owner(i)
		}
	}
}

// before is any order of claims; free ones come last.
func (c *claim) before(d *claim) bool {
	if c.stage != d.stage {
		return c.stage > d.stage
	}
	if a, b := c.rank(), d.rank(); a != b {
		return a > b
	}
	for i := range c.rows {
		if a, b := c.rows[i], d.rows[i]; a != b {
			return a.rank() > b.rank()
		}
	}
	return false
}

// rank tells claims apart by all but their rows.
func (c *claim) rank() int {
	numbers := (int(c.marks)*8+int(c.former))*16 + int(c.letter)
	return numbers*4 + bits(c.leased, c.marked)
}

func (e entry) rank() int { return (int(e.answer)*4+int(e.note))*4 + bits(e.mine, e.reborn) }

func bits(flags ...bool) (n int) {
	for _, set := range flags {
		n *= 2
		if set {
			n++
		}
	}
	return n
}
