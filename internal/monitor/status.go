package monitor

import (
	"time"

	"outboxrelay/envelope"
)

// Counts is how the unexported events of one or more scopes stand.
type Counts struct {
	Due       int     `json:"due"`
	InFlight  int     `json:"in_flight"`
	Delayed   int     `json:"delayed"`
	Parked    int     `json:"parked"`
	OldestDue float64 `json:"oldest_due_seconds"`
}

// Waiting is how many events are not exported and not parked.
func (c Counts) Waiting() int { return c.Due + c.InFlight + c.Delayed }

func (c Counts) plus(d Counts) Counts {
	return Counts{
		Due: c.Due + d.Due, InFlight: c.InFlight + d.InFlight, Delayed: c.Delayed + d.Delayed, Parked: c.Parked + d.Parked,
		OldestDue: max(c.OldestDue, d.OldestDue),
	}
}

// ScopeStatus is one scope and how its events stand.
type ScopeStatus struct {
	Tenant *string `json:"tenant"` // null for the non-tenant scope
	Counts
}

// NewScopeStatus says how the events of a scope stand.
func NewScopeStatus(scope envelope.Scope, c Counts) ScopeStatus {
	s := ScopeStatus{Counts: c}
	if id, ok := scope.Tenant(); ok {
		s.Tenant = &id
	}
	return s
}

// Status is the answer of "relay status --json" and, from memory, of /status.
type Status struct {
	Namespace string     `json:"namespace"`
	CountCap  int        `json:"count_cap"`  // a scope's count of that much means that many or more
	CountedAt *time.Time `json:"counted_at"` // null before all scopes were counted once
	Totals    Counts     `json:"totals"`
	// Scopes are left out where tenants may not be named.
	Scopes []ScopeStatus `json:"scopes,omitempty"`
	// Slots are those of exactly-once mode, as brokers tell of them; SlotsError says why they don't. Only the command asks.
	Slots      []SlotStatus `json:"slots,omitempty"`
	SlotsError string       `json:"slots_error,omitempty"`
}

// SlotStatus is a slot of exactly-once mode, as its transaction coordinator tells of it.
type SlotStatus struct {
	Slot        string  `json:"slot"`
	State       string  `json:"state"` // in Kafka's words
	Epoch       int16   `json:"epoch"`
	ProducerID  int64   `json:"producer_id"`
	Coordinator int32   `json:"coordinator"`
	Open        float64 `json:"open_seconds"` // 0 if no transaction is open
	Hangs       bool    `json:"hangs"`        // it is open for longer than brokers let it be
}

// NewStatus sums up scopes.
func NewStatus(namespace string, countCap int, countedAt *time.Time, scopes []ScopeStatus) Status {
	return Status{Namespace: namespace, CountCap: countCap, CountedAt: countedAt, Totals: totals(scopes), Scopes: scopes}
}

func totals(scopes []ScopeStatus) (sum Counts) {
	for _, s := range scopes {
		sum = sum.plus(s.Counts)
	}
	return sum
}
