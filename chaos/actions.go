package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"outboxrelay/internal/moments"
)

func nothing(context.Context, *stage, fault) error { return nil }

func killRelay(_ context.Context, s *stage, f fault) error {
	s.relays[f.targets[0]-1].kill()
	return nil
}

// momentPatience is how long a moment is waited for. Some come only while something else fails.
const momentPatience = 3 * time.Second

var errNoMoment = errors.New("its moment did not come")

// killAtMoment kills a relay when something that it says has come so far.
func killAtMoment(ctx context.Context, s *stage, f fault) error {
	r := s.relays[f.targets[0]-1]
	return r.spring(ctx, r.watch.Arm(f.moment, r.kill))
}

// freezeAtMoment freezes a relay when it has said something, which arrives when it is thawed: then others have long taken
// over what it held.
func freezeAtMoment(ctx context.Context, s *stage, f fault) error {
	r := s.relays[f.targets[0]-1]
	var until context.Context
	until, r.letGo = context.WithCancel(ctx)
	return r.spring(ctx, r.watch.Hold(f.moment.What, func() { r.signal(syscall.SIGSTOP) }, until.Done()))
}

// letGo thaws such a relay when what it said has had time to arrive.
func letGo(ctx context.Context, s *stage, f fault) error {
	s.relays[f.targets[0]-1].letGo()
	await(ctx, time.After(time.Second))
	return thawRelay(ctx, s, f)
}

// spring waits for a trap's moment.
func (r *relay) spring(ctx context.Context, trap *moments.Trap) error {
	select {
	case <-trap.Sprung():
		return nil
	case <-ctx.Done():
	case <-time.After(momentPatience):
	}
	if !r.watch.Disarm(trap) {
		return errNoMoment
	}
	<-trap.Sprung()
	return nil
}

func startRelay(_ context.Context, s *stage, f fault) error { return s.relays[f.targets[0]-1].start() }

func freezeRelay(_ context.Context, s *stage, f fault) error {
	s.relays[f.targets[0]-1].signal(syscall.SIGSTOP)
	return nil
}

func thawRelay(_ context.Context, s *stage, f fault) error {
	s.relays[f.targets[0]-1].signal(syscall.SIGCONT)
	return nil
}

// stopRelay notes a relay that did not end in time as one of its failures.
func stopRelay(_ context.Context, s *stage, f fault) error {
	r := s.relays[f.targets[0]-1]
	if err := r.stop(); err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended = append(r.ended, err)
	}
	return nil
}

// restartDatabase is what an operator does: connections are cut, and the server is back at once.
func restartDatabase(ctx context.Context, s *stage, _ fault) error { return s.postgres.Restart(ctx) }

// crashDatabase also closes the links, since a proxy would take connections that the server refuses.
func crashDatabase(_ context.Context, s *stage, _ fault) error {
	err := s.postgres.Kill()
	for _, link := range s.links {
		err = errors.Join(err, link.cut())
	}
	return err
}

func recoverDatabase(ctx context.Context, s *stage, _ fault) error {
	err := s.postgres.Restart(ctx)
	for _, link := range s.links {
		err = errors.Join(err, link.open())
	}
	return err
}

// onLinks does something to relays' ways to the database.
func onLinks(do func(*proxy) error) action {
	return func(_ context.Context, s *stage, f fault) (err error) {
		for _, n := range f.targets {
			err = errors.Join(err, do(s.links[n-1]))
		}
		return err
	}
}

// onRoutes does something to the ways to brokers.
func onRoutes(do func(*proxy) error) action {
	return func(_ context.Context, s *stage, f fault) (err error) {
		for _, n := range f.targets {
			err = errors.Join(err, do(s.routes[n-1]))
		}
		return err
	}
}

func killBrokers(ctx context.Context, s *stage, f fault) (err error) {
	for _, id := range f.targets {
		err = errors.Join(err, s.kafka.Kill(id))
	}
	return errors.Join(err, onRoutes((*proxy).cut)(ctx, s, f))
}

// stopBrokers stops them in an orderly way. One that takes too long is killed, which is a fault as good as any.
func stopBrokers(ctx context.Context, s *stage, f fault) error {
	for _, id := range f.targets {
		if err := s.kafka.Stop(id); err != nil {
			s.note("broker %d was killed, as it did not stop in time", id)
		}
	}
	return onRoutes((*proxy).cut)(ctx, s, f)
}

// startBrokers starts them one after the other. The way to one is open again once it serves.
func startBrokers(ctx context.Context, s *stage, f fault) error {
	for _, id := range f.targets {
		if err := s.kafka.Start(ctx, id); err != nil {
			return fmt.Errorf("start broker %d: %w", id, err)
		}
		if err := s.routes[id-1].open(); err != nil {
			return err
		}
	}
	return nil
}
