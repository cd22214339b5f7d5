package relayproc

import (
	"testing"
	"time"

	"outboxrelay/internal/waittest"
)

// Patience bounds each wait that a test has no limit of its own for; a loaded machine is slow.
const Patience = time.Minute

// Until waits for a condition and fails with its last error.
func Until(t testing.TB, what string, condition func() error) {
	t.Helper()
	Within(t, Patience, what, condition)
}

// Within waits for a condition for as long as limit.
func Within(t testing.TB, limit time.Duration, what string, condition func() error) {
	t.Helper()
	waittest.Until(t, limit, what, condition)
}
