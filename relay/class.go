package relay

import (
	"errors"
	"fmt"
)

// Class sorts the answers of a sink by what they mean for the row.
type Class uint8

const (
	// Delivered: all in-sync replicas have the event. The class of a nil error.
	Delivered Class = iota
	// RowFault: this event can't be sent as it is. Its row is parked.
	RowFault
	// Environment: broker, network or rights; nobody's fault. Tried again soon.
	Environment
	// Failed: any other error. Tried again with growing waits.
	Failed
	// NotAttempted: certainly not sent, for reasons that lie outside the event. Given
	// back without counting an attempt.
	NotAttempted
	// Unknown: sent, and no answer came. Nothing is written; the claim runs out.
	Unknown
)

// String is the class as the documentation names it.
func (c Class) String() string {
	return [...]string{"delivered", "row fault", "environment", "failed", "not attempted", "unknown"}[c]
}

// Wrap gives err the class c. The text is err's own. It is nil for a nil err.
func (c Class) Wrap(err error) error {
	if err == nil {
		return nil
	}
	return &classified{c, err}
}

type classified struct {
	class Class
	err   error
}

func (c *classified) Error() string { return c.err.Error() }
func (c *classified) Unwrap() error { return c.err }

// ClassOf is the class that an error was given, [Delivered] for nil, [Failed] for an
// error without one.
func ClassOf(err error) Class {
	if err == nil {
		return Delivered
	}
	var c *classified
	if errors.As(err, &c) {
		return c.class
	}
	return Failed
}

// errNoAnswer stands for an event that the sink has not answered yet.
var errNoAnswer = Unknown.Wrap(errors.New("sent, but no answer came from the sink"))

// errBehind answers an event that was not sent because an earlier one of its
// operation was not delivered.
var errBehind = NotAttempted.Wrap(errors.New("an earlier event of the operation was not delivered"))

// notEnoughLease answers events that were not sent because their lease was too far gone.
func notEnoughLease(need fmt.Stringer) error {
	return NotAttempted.Wrap(fmt.Errorf("less than %s was left of the lease, so nothing was sent", need))
}
