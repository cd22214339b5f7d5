package faults_test

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"outboxrelay/internal/relayproc"
)

// startLoad writes a few operations at a time until stop is called, as an application does that gives up what fails. What is being
// written then is waited for: a commit whose answer nobody awaits may come when all has been counted.
func (s *scene) startLoad() (stop func()) {
	ctx, cancel := context.WithCancel(s.T.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		for tick := time.Tick(30 * time.Millisecond); ctx.Err() == nil; {
			step, done := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			_ = relayproc.App.Fill(step, s.Pool, s.acme, 5, 3) // the table holds what was written
			done()
			select {
			case <-ctx.Done():
			case <-tick:
			}
		}
	})
	stop = func() {
		cancel()
		writer.Wait()
	}
	s.T.Cleanup(stop)
	return stop
}

// workers is how many a relay has by default, and poolSize the most connections that it opens then, as docs/operations.md says.
const (
	workers  = 4
	poolSize = 2*workers + 5
)

// watchConnections counts the relay's connections all the time, and fails if there ever were more than so many.
func (s *scene) watchConnections(allowed int64) {
	ctx, cancel := context.WithCancel(s.T.Context())
	var most, looks atomic.Int64
	var watcher sync.WaitGroup
	watcher.Go(func() {
		for tick := time.Tick(50 * time.Millisecond); ctx.Err() == nil; {
			var n int64
			err := s.Pool.QueryRow(ctx, `select count(*) from pg_stat_activity
				where datname = current_database() and application_name = 'relay'`).Scan(&n)
			if err == nil {
				looks.Add(1)
				most.Store(max(most.Load(), n))
			}
			select {
			case <-ctx.Done():
			case <-tick:
			}
		}
	})
	s.T.Cleanup(func() {
		cancel()
		watcher.Wait()
		s.T.Logf("at most %d connections, in %d looks", most.Load(), looks.Load())
		if n := most.Load(); n < 1 || n > allowed {
			s.T.Errorf("the relay had %d connections, want 1 to %d", n, allowed)
		}
	})
}
