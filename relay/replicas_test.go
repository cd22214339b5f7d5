package relay_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

// TestReplicasRetryAtOnePace: an event that fails each time is tried as often by twelve relays as by one.
func TestReplicasRetryAtOnePace(t *testing.T) {
	bubble(t, func(f *fixture) {
		const wait, hours = time.Minute, 1
		f.config.RetryDelay, f.config.RetryMaxDelay, f.config.PollInterval = wait, wait, 5*time.Second
		acme := f.scope("acme")
		operation := f.operation(acme, 1)
		var mended atomic.Bool
		f.sink.Handle = func(_ context.Context, s *relaytest.Send) {
			if !mended.Load() {
				s.Rest(errors.New("no"))
				return
			}
			s.Rest(nil)
		}
		var stops []func()
		for i := range 12 {
			f.config.WorkerID = fmt.Sprint("replica-", i)
			f.make()
			stops = append(stops, f.start(acme))
		}
		time.Sleep(hours * time.Hour)
		// Waits are 30 s to a minute, and a poll interval at most.
		if n := f.sink.Sends(); n > hours*120 || n < hours*60/2 {
			t.Errorf("%d attempts in %d hours, want one in %s to %s", n, hours, wait/2, wait)
		}
		if n := f.row(acme, 0).Attempts; n != f.sink.Sends() {
			t.Errorf("%d attempts are counted, %d were made", n, f.sink.Sends())
		}
		mended.Store(true)
		f.await("it is exported", f.drained(acme))
		for _, stop := range stops {
			stop()
		}
		f.deliveredOnce(operation, 1)
		if n := f.tally.status(relay.Lost); n != 0 {
			t.Errorf("%d settlements came too late", n)
		}
	})
}
