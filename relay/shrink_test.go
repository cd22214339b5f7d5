package relay_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

// TestClaimsThatTimeOutGetSmaller: a few rows took a database so long that a claim of a
// thousand timed out each time, and their tenant stood still for good. Smaller claims
// get past them, and when they are gone claims are as large as before.
func TestClaimsThatTimeOutGetSmaller(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		for range 40 {
			f.operation(acme, 1)
		}
		f.store.SetFault(func(_ context.Context, c relaytest.Call, done bool) error {
			if !done && c.IsClaim() && c.Rows > 1 && !f.row(acme, 3).Exported {
				return errors.New("canceling statement due to statement timeout")
			}
			return nil
		})
		stop := f.start(acme)
		begin := time.Now()
		f.await("all rows are exported", f.drained(acme))
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("it took %s", took)
		}
		time.Sleep(time.Minute)
		var last int
		f.store.SetFault(func(_ context.Context, c relaytest.Call, done bool) error {
			if c.IsClaim() {
				last = c.Rows
			}
			return nil
		})
		time.Sleep(time.Second)
		stop()
		if last != relay.DefaultBatchRows {
			t.Errorf("the last claim asked for %d rows, want %d again", last, relay.DefaultBatchRows)
		}
	})
}
