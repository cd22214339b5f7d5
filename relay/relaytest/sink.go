package relaytest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

// Sink hands each Publish to the test, and remembers what was delivered. The zero
// value delivers everything at once. It is safe for concurrent use; the fields must
// not be changed after the first call.
type Sink struct {
	// Handle is called by each Publish, which returns when Handle does; nil delivers
	// all events. It may block, and may keep the send for later answers.
	Handle func(ctx context.Context, send *Send)
	// Unready is what Ready answers; nil stands for always ready.
	Unready func(envelope.Scope) error

	mu        sync.Mutex
	sends     int
	delivered []envelope.Event
}

var _ relay.Sink = (*Sink)(nil)

// Ready implements [relay.Sink].
func (s *Sink) Ready(scope envelope.Scope) error {
	if s.Unready == nil {
		return nil
	}
	return s.Unready(scope)
}

// Publish implements [relay.Sink].
func (s *Sink) Publish(ctx context.Context, events []envelope.Event, answer func(int, error)) {
	s.mu.Lock()
	s.sends++
	send := &Send{
		N: s.sends, Events: events, sink: s, answer: answer,
		answered: make([]bool, len(events)), errs: make([]error, len(events)),
	}
	s.mu.Unlock()
	if s.Handle == nil {
		send.Rest(nil)
		return
	}
	s.Handle(ctx, send)
}

// Delivered gives the events that have arrived so far, in the order in which they did.
func (s *Sink) Delivered() []envelope.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.delivered)
}

func (s *Sink) arrive(event envelope.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delivered = append(s.delivered, event)
}

// Sends is how often Publish was called.
func (s *Sink) Sends() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sends
}

// Send is one Publish. It is safe for concurrent use.
type Send struct {
	N      int // 1 for the sink's first
	Events []envelope.Event

	sink   *Sink
	answer func(int, error)

	mu       sync.Mutex
	answered []bool
	errs     []error
}

// Answer answers one event. A nil error delivers it first. It passes on whatever the
// test says, also what no good sink would.
func (s *Send) Answer(i int, err error) {
	s.mu.Lock()
	s.answered[i], s.errs[i] = true, err
	s.mu.Unlock()
	if err == nil {
		s.Arrive(i)
	}
	s.answer(i, err)
}

// Arrive delivers an event without an answer.
func (s *Send) Arrive(i int) { s.sink.arrive(s.Events[i]) }

// Rest answers all events that have no answer yet, in order, as a good sink does:
// behind an event that was not delivered, those of its operation are not attempted.
func (s *Send) Rest(err error) {
	blocked := map[uuid.UUID]bool{}
	for i := range s.Events {
		s.mu.Lock()
		answered, was := s.answered[i], s.errs[i]
		s.mu.Unlock()
		operation := s.Events[i].OperationID
		switch {
		case answered:
			blocked[operation] = blocked[operation] || was != nil
		case blocked[operation]:
			s.Answer(i, errBehind)
		default:
			s.Answer(i, err)
			blocked[operation] = err != nil
		}
	}
}

var errBehind = relay.NotAttempted.Wrap(errors.New("an earlier event of the operation was not delivered"))
