package aksaratest

import (
	"testing"
	"time"
)

// Kind is a way that an operation can go from its admission to its end.
type Kind string

// The kinds. Together they record all twelve events of Aksara.
const (
	Success        Kind = "success"         // admitted, claimed, succeeded
	Failure        Kind = "failure"         // admitted, claimed, terminal_failure
	Retry          Kind = "retry"           // admitted, claimed, retry_scheduled, claimed, succeeded
	CancelRunning  Kind = "cancel_running"  // admitted, claimed, cancellation_requested, cancellation_observed
	CancelReady    Kind = "cancel_ready"    // admitted, cancellation_requested
	Approve        Kind = "approve"         // admitted, approved, claimed, succeeded
	Reject         Kind = "reject"          // admitted, rejected
	Deadline       Kind = "deadline"        // admitted, deadline_expired
	ApprovalExpiry Kind = "approval_expiry" // admitted, approval_expired
	Reclaim        Kind = "reclaim"         // admitted, claimed, lease_reclaimed, succeeded
)

// EachKind returns counts that ask for n operations of every kind.
func EachKind(n int) map[Kind]int {
	return map[Kind]int{
		Success: n, Failure: n, Retry: n, CancelRunning: n, CancelReady: n,
		Approve: n, Reject: n, Deadline: n, ApprovalExpiry: n, Reclaim: n,
	}
}

// GenerateOptions says which operations to write.
type GenerateOptions struct {
	Namespace string
	Scopes    []string     // tenant ids, or NonTenant
	Counts    map[Kind]int // operations of each kind, in each scope
	Lanes     int          // operations under way at once; 0 means 6
	// Retention is how long the operations stay before a prune may take them; 0 means Aksara's default, 7 days.
	Retention time.Duration
	// FailureCodes are given to failing operations in turn, as an application may: any text of at most 100 characters.
	// Without them an operation fails as one whose code raised an error does.
	FailureCodes []string
}

// Transition is one change of an operation's state. From and Reason are nil where Aksara writes null.
type Transition struct {
	Event  string  `json:"event"`
	From   *string `json:"from"`
	To     string  `json:"to"`
	Reason *string `json:"reason"`
}

// Operation is an operation that was written, with the transitions that Aksara must have recorded for it, by its kind. The
// first has state version 1, and each next one 1 more.
type Operation struct {
	ID          string       `json:"id"`
	Scope       string       `json:"scope"`
	Kind        Kind         `json:"kind"`
	Transitions []Transition `json:"transitions"`
}

// Generate writes operations through Aksara's services into the migrated database at databaseURL and returns them in the
// order of their ends. All have reached their end when it returns. It writes some 400 to 1,000 transitions a second.
func Generate(t testing.TB, databaseURL string, options GenerateOptions) []Operation {
	t.Helper()
	lanes := options.Lanes
	if lanes == 0 {
		lanes = 6
	}
	return mustRun[[]Operation](t, "generate", map[string]any{
		"url":       databaseURL,
		"namespace": options.Namespace,
		"scopes":    options.Scopes,
		"counts":    options.Counts,
		"lanes":     lanes,
		"retention": options.Retention.Seconds(),
		"failures":  options.FailureCodes,
	})
}
