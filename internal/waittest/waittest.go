// Package waittest has tests wait for conditions.
package waittest

import (
	"testing"
	"time"
)

const tick = 10 * time.Millisecond

// Until asks for a condition again and again until it is nil, and fails the test with its last error
// when that takes longer than limit.
func Until(t testing.TB, limit time.Duration, what string, condition func() error) {
	t.Helper()
	deadline := time.After(limit)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		err := condition()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("waited %s for %s: %v", limit, what, err)
		case <-ticker.C:
		}
	}
}
