package monitor

import (
	"sync"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

// About is what never changes while a relay runs.
type About struct {
	Namespace string `json:"namespace"`
	Version   string `json:"version"`
	Worker    string `json:"worker"`
	Delivery  string `json:"delivery"`
	CountCap  int    `json:"count_cap"`
	// Details allows tenant names and error texts to be shown.
	Details bool `json:"details"`
}

// Parked is a parked event and why it is.
type Parked struct {
	Tenant    *string    `json:"tenant"` // null for the non-tenant scope
	ID        int64      `json:"id"`
	Operation string     `json:"operation_id"`
	Created   *time.Time `json:"created_at"` // null if it is no time
	Attempts  int        `json:"attempts"`
	Reason    string     `json:"reason"`
}

// Health is how the relay and its servers are; nil is well.
type Health struct {
	Live, Database, Broker error
}

// Board is what /status and the page show. The relay's background work writes on it, and
// requests only read it. It is safe for concurrent use.
type Board struct {
	relay.Unobserved
	about   About
	started time.Time
	pace    pace

	mu      sync.RWMutex
	scopes  []posted
	index   map[envelope.Scope]int
	counted time.Time // when a round of counting last ended
	parked  []Parked
	live    error
	servers [2]server // database, broker
}

// posted is a scope on the board.
type posted struct {
	ScopeStatus
	Trouble string `json:"trouble,omitempty"` // why its events can't be sent
}

// server is how a server has been, and since when.
type server struct {
	err   error
	since time.Time
}

// NewBoard makes the board of one relay.
func NewBoard(about About) *Board {
	now := time.Now()
	return &Board{about: about, started: now, pace: newPace(now), servers: [2]server{{since: now}, {since: now}}}
}

// Scopes says which scopes are configured, before a round of counting. Those that were
// there keep their figures.
func (b *Board) Scopes(scopes []envelope.Scope) {
	fresh, index := make([]posted, len(scopes)), make(map[envelope.Scope]int, len(scopes))
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, scope := range scopes {
		if old, ok := b.index[scope]; ok {
			fresh[i] = b.scopes[old]
		} else {
			fresh[i].ScopeStatus = NewScopeStatus(scope, Counts{})
		}
		index[scope] = i
	}
	b.scopes, b.index = fresh, index
}

// Counted takes the figures of one scope, and why its events can't be sent, if so.
func (b *Board) Counted(scope envelope.Scope, c Counts, trouble error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, ok := b.index[scope]
	if !ok {
		return
	}
	b.scopes[i].Counts, b.scopes[i].Trouble = c, ""
	if trouble != nil {
		b.scopes[i].Trouble = trouble.Error()
	}
}

// Round ends a round of counting and gives the sum. parked are some of the parked events.
func (b *Board) Round(parked []Parked) Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counted, b.parked = time.Now(), parked
	sum := b.totals()
	b.pace.waits(b.counted, sum.Waiting())
	return sum
}

func (b *Board) totals() (sum Counts) {
	for i := range b.scopes {
		sum = sum.plus(b.scopes[i].Counts)
	}
	return sum
}

// Healthy takes how the relay and its servers are.
func (b *Board) Healthy(h Health) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.live = h.Live
	if h.Database != nil {
		b.pace.waits(time.Now(), -1) // until it can be counted again
	}
	for i, err := range []error{h.Database, h.Broker} {
		if (err == nil) != (b.servers[i].err == nil) {
			b.servers[i].since = time.Now()
		}
		b.servers[i].err = err
	}
}

// Settled implements [relay.Observer]: it counts what was delivered.
func (b *Board) Settled(_ relay.Claim, verdicts []relay.Verdict, results []relay.Result, _ time.Duration) {
	b.pace.settled(time.Now(), verdicts, results)
}

// Status is the answer to /status.
func (b *Board) Status() Status {
	b.mu.RLock()
	defer b.mu.RUnlock()
	s := Status{Namespace: b.about.Namespace, CountCap: b.about.CountCap, CountedAt: b.countedAt(), Totals: b.totals()}
	if b.about.Details {
		s.Scopes = make([]ScopeStatus, len(b.scopes))
		for i := range b.scopes {
			s.Scopes[i] = b.scopes[i].ScopeStatus
		}
	}
	return s
}

func (b *Board) countedAt() *time.Time {
	if b.counted.IsZero() {
		return nil
	}
	at := b.counted.UTC().Truncate(time.Millisecond)
	return &at
}
