package relay

import (
	"context"
	"errors"
)

// mayClaim is nil if the servers are fit for anything to be claimed by any slot. It is asked when a slot is taken, and now and then
// while they are held; see [forbids].
func (r *Relay) mayClaim(ctx context.Context) error { return r.cfg.ExactlyOnce.Store.Durable(ctx) }

// forbids is true for an answer of mayClaim by which slots that are held must be given up; false if nothing could be learned.
func forbids(err error) bool { return errors.Is(err, ErrForgetful) }
