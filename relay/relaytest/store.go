package relaytest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

// Stored is one outbox row as a store keeps it. Instants are on the store's clock.
type Stored struct {
	ID        int64
	Namespace string
	Scope     envelope.Scope
	Operation uuid.UUID
	Version   int64 // of the operation's state, from 1
	Type      string
	Payload   []byte
	Created   time.Time

	Attempts  int
	Due       time.Time // meaningless while Parked
	Parked    bool
	ClaimedBy string    // "" for none
	Expires   time.Time // of the claim; zero for none
	Exported  bool
	LastError string // "" for none
}

// String describes the row for a test's message.
func (r Stored) String() string {
	due := r.Due.Format(time.RFC3339Nano)
	if r.Parked {
		due = "never"
	}
	return fmt.Sprintf("row %d (version %d): %d attempts, due %s, exported %t, claimed by %q until %s, last error %q",
		r.ID, r.Version, r.Attempts, due, r.Exported, r.ClaimedBy, r.Expires.Format(time.RFC3339Nano), r.LastError)
}

// Store is an outbox in memory. The zero value is empty and ready to use. It is safe
// for concurrent use.
type Store struct {
	mu    sync.Mutex
	rows  []*Stored           // row n is at n-1
	last  map[uuid.UUID]int64 // version of each operation
	ahead time.Duration       // of the store's clock before the process's
	fault Fault
}

var _ Outbox = (*Store)(nil)

// Call is one call of a [Store], as a [Fault] sees it.
type Call struct {
	Scope    envelope.Scope
	Token    string
	Rows     int              // that a claim asks for at most
	Verdicts []relay.Verdict  // of a settlement
	Renewed  []int64          // the rows of a renewal
	Looked   []envelope.Scope // of a look at several, which has no Scope
}

// IsClaim tells claims from settlements, renewals and looks.
func (c Call) IsClaim() bool { return c.Verdicts == nil && c.Renewed == nil && c.Looked == nil }

// Fault looks at each call twice: before it takes effect, and when it has (done). The
// call ends with the error that Fault returns. An error before means that nothing
// happened; one after, that only the answer was lost. Fault may block, and may be
// called from many goroutines at once.
type Fault func(ctx context.Context, call Call, done bool) error

// SetFault replaces the store's Fault; nil stands for none.
func (s *Store) SetFault(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Now is the store's clock.
func (s *Store) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now()
}

func (s *Store) now() time.Time { return time.Now().Add(s.ahead) }

// Pass puts the store's clock forward.
func (s *Store) Pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += d
}

// Add appends the next n events of an operation, due at once.
func (s *Store) Add(namespace string, scope envelope.Scope, operation uuid.UUID, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[uuid.UUID]int64{}
	}
	for range n {
		s.last[operation]++
		version := s.last[operation]
		s.rows = append(s.rows, &Stored{
			ID: int64(len(s.rows) + 1), Namespace: namespace, Scope: scope, Operation: operation, Version: version,
			Type: "aksara.operation.transition", Payload: payload(operation, version),
			Created: s.now().Truncate(time.Microsecond), Due: s.now(),
		})
	}
}

func payload(operation uuid.UUID, version int64) []byte {
	return fmt.Appendf(nil, `{"operation_id": %q, "state_version": %d}`, operation, version)
}

// Rows gives copies of a scope's rows, by ascending id.
func (s *Store) Rows(scope envelope.Scope) []Stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []Stored
	for _, r := range s.rows {
		if r.Scope == scope {
			rows = append(rows, *r)
		}
	}
	return rows
}

// Edit calls change with each row, which it may change, as somebody at the database's
// prompt would.
func (s *Store) Edit(change func(*Stored)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rows {
		change(r)
	}
}

// Seize claims a row as another exporter would, whatever its state.
func (s *Store) Seize(id int64, by string, lease time.Duration) {
	s.Edit(func(r *Stored) {
		if r.ID == id {
			r.ClaimedBy, r.Expires = by, s.now().Add(lease)
		}
	})
}

// held is true while a claim holds the row.
func (r *Stored) held(now time.Time) bool { return r.Expires.After(now) }

// due is true when the row's due time has come.
func (r *Stored) due(now time.Time) bool { return !r.Parked && !r.Due.After(now) }

// unexported gives the operation's unexported rows, by ascending id. The caller holds
// mu.
func (s *Store) unexported() map[uuid.UUID][]*Stored {
	pending := map[uuid.UUID][]*Stored{}
	for _, r := range s.rows {
		if !r.Exported {
			pending[r.Operation] = append(pending[r.Operation], r)
		}
	}
	return pending
}

// find gives the row with an id, nil if there is none. The caller holds mu.
func (s *Store) find(id int64) *Stored {
	if id < 1 || id > int64(len(s.rows)) {
		return nil
	}
	return s.rows[id-1]
}

// call runs a call's effect between the two looks of the store's Fault.
func (s *Store) call(ctx context.Context, c Call, effect func()) error {
	return s.callAll(ctx, []Call{c}, effect)
}

// limited is callAll with a limit of what the server may take, if it isn't 0. Claims of one scope don't keep to theirs: a Fault
// says what becomes of them.
func (s *Store) limited(ctx context.Context, limit time.Duration, calls []Call, effect func()) error {
	if limit == 0 {
		return s.callAll(ctx, calls, effect)
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := s.callAll(within, calls, effect)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return relay.RowFault.Wrap(errors.New("canceling statement due to statement timeout"))
	}
	return err
}

// callAll runs the effect of several calls that are one. The first error of a look ends it.
func (s *Store) callAll(ctx context.Context, calls []Call, effect func()) error {
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	look := func(done bool) (err error) {
		for i := 0; i < len(calls) && fault != nil && err == nil; i++ {
			err = fault(ctx, calls[i], done)
		}
		return err
	}
	if err := look(false); err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	effect()
	s.mu.Unlock()
	return look(true)
}
