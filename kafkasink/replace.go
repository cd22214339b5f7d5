package kafkasink

import (
	"context"
	"time"
)

// replaceOutdated makes a new client when a topic has other terms than the present one
// sends on: max.message.bytes was changed, or another topic has taken the name.
func (s *Sink) replaceOutdated(ctx context.Context) {
	if s.current().outdated() {
		s.replace(ctx)
	}
}

// replaceBroken makes a new client whenever the present one is severed, or has not answered for
// long: it no longer recovers by itself. What it has sent by then has an unknown outcome.
//
// Or when it is old. A broker forgets a producer that has not written to a partition for a day
// (producer.id.expiration.ms), and then takes whatever it sends first. The client remembers that
// the partition has answered, and sends several requests at once: with the first one refused, or
// lost with its connection, the second would be written.
func (s *Sink) replaceBroken(ctx context.Context) {
	for {
		present := s.current()
		select {
		case <-ctx.Done():
			return
		case <-present.severed:
			if s.current() == present {
				s.replace(ctx)
			}
			continue
		case <-time.After(s.pace.stuckLook):
		}
		since, _ := s.waiting(func(w *send) bool { return w.client == s.client })
		if since > s.pace.stuck || time.Since(s.current().made) > s.pace.life {
			s.replace(ctx)
		}
	}
}

// replace makes a new client for all further events. The old one is closed, and what
// it holds answered, when its events are answered or have waited too long.
func (s *Sink) replace(ctx context.Context) {
	client, err := newClient(s.cfg, s.topics.terms)
	if err != nil {
		return // can't be: the first one was made from the same settings
	}
	s.mu.Lock()
	old := s.client
	s.client = client
	s.mu.Unlock()
	s.ended.Go(func() {
		defer old.Close() // what has no answer yet is unknown
		draining, cancel := context.WithTimeout(ctx, s.cfg.DeliveryTimeout)
		defer cancel()
		s.ended.Go(func() {
			select {
			case <-old.severed:
				cancel()
			case <-draining.Done():
			}
		})
		s.drain(draining, old)
		select {
		case <-old.severed:
			// All that is out has an answer soon, or none. What can't be sent would wait for the delivery time-out.
			ctx, cancel := context.WithTimeout(ctx, slow)
			defer cancel()
			_ = old.AbortBufferedRecords(ctx)
		default:
		}
	})
}

// drain waits until all that was sent through a client is answered, or ctx ends.
func (s *Sink) drain(ctx context.Context, through *client) {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.answered.Broadcast()
	})
	defer stop()
	holds := func() bool {
		for w := range s.sends {
			if w.client == through {
				return true
			}
		}
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for ctx.Err() == nil && holds() {
		s.answered.Wait()
	}
}
