// Package waittest has tests wait for conditions.
package waittest

import (
	"testing"
	"time"
)

const tick = 10 * time.Millisecond

// Until asks for a condition again and again until it is nil, and fails the test with its last error
// when that takes longer than limit. What takes long to ask is asked seldom, so that servers are not
// kept busy with it.
func Until(t testing.TB, limit time.Duration, what string, condition func() error) {
	t.Helper()
	deadline := time.After(limit)
	for {
		begin := time.Now()
		err := condition()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("waited %s for %s: %v", limit, what, err)
		case <-time.After(max(tick, 4*time.Since(begin))):
		}
	}
}
