package exactmodel

import (
	"fmt"
	"strings"
)

// Rows a1 and a2 are of one operation, b1 is of another.
var (
	operations = [...]int{0, 0, 1}
	names      = [...]string{"a1", "a2", "b1"}
)

const mostRows = len(operations)

// mask is a set of rows.
type mask uint8

const all mask = 1<<mostRows - 1

func (m mask) has(r int) bool { return m&(1<<r) != 0 }

func (m mask) String() string {
	var b strings.Builder
	for r, name := range names {
		if m.has(r) {
			b.WriteString(" " + name)
		}
	}
	if m == 0 {
		return " nothing"
	}
	return b.String()
}

// token names a claim: the slot in the upper half, a number in the lower. 0 is none.
type token uint8

// initial is the number of the token that a slot's ledger begins with.
const initial = 15

func newToken(slot, number int) token { return token(slot<<4 | number) } //nolint:gosec // two slots, few tokens

func (t token) slot() int   { return int(t >> 4) }
func (t token) number() int { return int(t & 15) }

func (t token) String() string {
	switch {
	case t == 0:
		return "-"
	case t.number() == initial:
		return fmt.Sprintf("S%d#init", t.slot())
	}
	return fmt.Sprintf("S%d#%d", t.slot(), t.number())
}

// row is a row of the outbox, and whether read_committed consumers have seen its event.
type row struct {
	owner    token
	expired  bool // the owner's lease is over
	exported bool
	visible  bool
}

// entry is what the ledger says.
type entry struct {
	token token // 0 if there is none
	rows  mask
}

// transaction is an open one. Its commit has been asked for.
type transaction struct {
	open  bool
	by    uint8 // the relay that waits for the answer, or nobody
	rows  mask  // whose events were sent
	twice mask  // of those, in the same transaction
	entry
	hides bool // it was begun before the last entry of the other slot
}

// nobody is no relay.
const nobody = relays

// slot is what the brokers know of a transactional id.
type slot struct {
	last   entry // committed
	older  entry // the one before, while a transaction of the other slot hides the last
	open   transaction
	holder uint8 // who has the newest epoch, or nobody
}

// thread is a worker or a helper: what it has heard decides what it does next.
type thread struct {
	ready bool    // worker: it began with a slot that it held, and nothing undecided
	heard history // answers since
	early entry   // a mistake: the entry that it has read before the fence
}

const relays = 2

type process struct {
	worker, helper thread
	stale          bool // the helper has seen a claim of the own slot that ran out, and the worker not noticed yet
	waits          bool // the worker waits for the answer to a commit
}

// afterwards is a write whose caller was told that it failed, and that is carried out later.
type afterwards struct {
	kind         kind // none, claim or settle
	token        token
	marks, freed mask
}

// world is everything at one moment.
type world struct {
	rows      [mostRows]row
	slots     [relays]slot
	processes [relays]process
	late      afterwards
	faults    uint8 // how much may still go wrong
}

// rename calls each with each token, and puts its answer in the place.
func (w *world) rename(each func(token) token) {
	for i := range w.rows {
		w.rows[i].owner = each(w.rows[i].owner)
	}
	for i := range w.slots {
		s := &w.slots[i]
		for _, t := range []*token{&s.last.token, &s.older.token, &s.open.token} {
			*t = each(*t)
		}
	}
	w.late.token = each(w.late.token)
	for i := range w.processes {
		p := &w.processes[i]
		for _, t := range []*thread{&p.worker, &p.helper} {
			t.early.token = each(t.early.token)
			t.heard = t.heard.rename(each)
		}
	}
}

// canonical gives one of several worlds that differ in the names of tokens only.
func (w world) canonical() world {
	var names [256]token
	var count [relays]int
	w.rename(func(t token) token {
		if t == 0 || t.number() == initial {
			return t
		}
		if names[t] == 0 {
			count[t.slot()]++
			names[t] = newToken(t.slot(), count[t.slot()])
		}
		return names[t]
	})
	return w
}

// fresh is a token of a slot that is nowhere else.
func (w *world) fresh(slot int) token {
	var used [256]bool
	w.rename(func(t token) token {
		used[t] = true
		return t
	})
	for n := 1; n < initial; n++ {
		if t := newToken(slot, n); !used[t] {
			return t
		}
	}
	panic("more claims than numbers")
}

// String gives a world in one line.
func (w world) String() string {
	var b strings.Builder
	for r, row := range w.rows {
		fmt.Fprintf(&b, "%s", names[r])
		if row.owner != 0 {
			fmt.Fprintf(&b, " %s", row.owner)
		}
		for _, is := range []struct {
			so   bool
			name string
		}{{row.expired, "expired"}, {row.visible, "visible"}, {row.exported, "exported"}} {
			if is.so {
				b.WriteString(" " + is.name)
			}
		}
		b.WriteString(" | ")
	}
	for i, s := range w.slots {
		if s == (slot{holder: nobody}) {
			continue
		}
		fmt.Fprintf(&b, "S%d last %s", i, s.last.token)
		if s.open.open {
			fmt.Fprintf(&b, ", open %s", s.open.token)
		}
		b.WriteString(" | ")
	}
	return strings.TrimSuffix(b.String(), " | ")
}
