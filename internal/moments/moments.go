// Package moments is a proxy that follows what a relay says to PostgreSQL and Kafka, and acts at a chosen moment: when a
// statement or request of a kind is on its way, has been carried out, or has been answered. Whatever a relay does between
// two such moments, nobody else can see; so to end it at each of them is to end it everywhere.
package moments

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Stage is how far a statement or request has come.
type Stage int

// The stages, in their order.
const (
	Sent   Stage = iota // it has left the relay, and the server does not have it
	Open                // the server has carried it out, and not committed it; of statements only
	Done                // the server has carried it out, and the relay does not have the answer
	Told                // the relay has the answer
	stages              // how many there are
)

func (s Stage) String() string {
	return [...]string{"sent", "carried out, not committed", "done, not told", "told"}[s]
}

// Moment is when something that a relay says has come to a stage.
type Moment struct {
	What  string // one of Statements or Requests
	Stage Stage
}

func (m Moment) String() string { return fmt.Sprintf("%s: %s", m.What, m.Stage) }

// All gives each moment of each statement, and of the requests that carry events.
func All() (all []Moment) {
	for _, what := range Statements() {
		for stage := range stages {
			all = append(all, Moment{what, stage})
		}
	}
	return append(all, of(Produce)...)
}

// Transactions gives each moment of what a relay says in exactly-once mode.
func Transactions() (all []Moment) {
	for _, what := range []string{Claim, Payloads, Mark, Release} {
		for stage := range stages {
			all = append(all, Moment{what, stage})
		}
	}
	return slices.Concat(all, of(InitProducerID), of(Produce), of(EndTxn))
}

// of gives the moments of a request.
func of(what string) []Moment {
	return []Moment{{what, Sent}, {what, Done}, {what, Told}}
}

// Watch waits for a moment of one relay. It is safe for concurrent use.
type Watch struct {
	mu    sync.Mutex
	armed *Trap
}

// Trap is what happens at a moment.
type Trap struct {
	moment Moment
	act    func()
	sprung chan struct{}
	held   <-chan struct{} // nil if the connection is closed
	state  atomic.Int32    // waiting, begun or off
}

// States of a trap.
const (
	waiting = iota
	begun
	off
)

// Arm sets a trap, in place of a former one. At the moment act is called, while the relay's words or the server's are kept
// back; then their connection is closed. That happens once.
func (w *Watch) Arm(m Moment, act func()) *Trap { return w.arm(&Trap{moment: m, act: act}) }

// Hold sets a trap for a request that has been sent. After act it is held back until a channel is closed, and then goes
// on, as do those behind it.
func (w *Watch) Hold(request string, act func(), until <-chan struct{}) *Trap {
	return w.arm(&Trap{moment: Moment{request, Sent}, act: act, held: until})
}

func (w *Watch) arm(t *Trap) *Trap {
	t.sprung = make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = t
	return t
}

// Disarm takes the trap away, unless it acts already; then it tells so. A moment whose beginning was met need not come: the
// connection may end before.
func (w *Watch) Disarm(t *Trap) (acts bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.armed == t {
		w.armed = nil
	}
	return !t.state.CompareAndSwap(waiting, off)
}

// Sprung is closed when the trap has acted.
func (t *Trap) Sprung() <-chan struct{} { return t.sprung }

// take gives the trap, and takes it away, if it is for one of these. w may be nil.
func (w *Watch) take(whats ...string) *Trap {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.armed
	if t == nil || !slices.Contains(whats, t.moment.What) {
		return nil
	}
	w.armed = nil
	return t
}

// spring acts, unless the trap was taken away; then it is false.
func (t *Trap) spring() bool {
	if !t.state.CompareAndSwap(waiting, begun) {
		return false
	}
	t.act()
	close(t.sprung)
	return true
}
