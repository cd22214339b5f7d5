package aksaratest_test

import (
	"reflect"
	"slices"
	"testing"

	"outboxrelay/internal/aksaratest"
	"outboxrelay/internal/pgtest"
)

const namespace = "shop"

// The twelve events of Aksara 0.7.2.
var allEvents = []string{
	"admitted", "approval_expired", "approved", "cancellation_observed", "cancellation_requested", "claimed",
	"deadline_expired", "lease_reclaimed", "rejected", "retry_scheduled", "succeeded", "terminal_failure",
}

func TestGenerateRecordsEveryEventInEveryScope(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t, aksaratest.Setup(t))
	scopes := []string{"tenant a", "tenant b", aksaratest.NonTenant}
	operations := aksaratest.Generate(t, db.URL, aksaratest.GenerateOptions{
		Namespace: namespace,
		Scopes:    scopes,
		Counts:    aksaratest.EachKind(2),
	})
	if want := len(scopes) * len(aksaratest.EachKind(2)) * 2; len(operations) != want {
		t.Fatalf("got %d operations, want %d", len(operations), want)
	}

	stored := readOutbox(t, db)
	for _, operation := range operations {
		got := stored[operationKey{operation.Scope, operation.ID}]
		if !reflect.DeepEqual(got, operation.Transitions) {
			t.Errorf("%s operation in scope %q:\ngot  %s\nwant %s",
				operation.Kind, operation.Scope, describe(got), describe(operation.Transitions))
		}
	}
	if len(stored) != len(operations) {
		t.Errorf("the outbox holds %d operations, want %d", len(stored), len(operations))
	}
	for _, scope := range scopes {
		if got := eventsOf(stored, scope); !slices.Equal(got, allEvents) {
			t.Errorf("events in scope %q:\ngot  %q\nwant %q", scope, got, allEvents)
		}
	}
}

func TestGenerateGivesFailuresTheWantedCodes(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t, aksaratest.Setup(t))
	codes := []string{"", `quote " and \ ` + "\n", "räson 😀"}
	operations := aksaratest.Generate(t, db.URL, aksaratest.GenerateOptions{
		Namespace:    namespace,
		Scopes:       []string{"tenant a"},
		Counts:       map[aksaratest.Kind]int{aksaratest.Failure: len(codes)},
		FailureCodes: codes,
	})
	stored := readOutbox(t, db)
	var got []string
	for _, operation := range operations {
		transitions := stored[operationKey{operation.Scope, operation.ID}]
		if !reflect.DeepEqual(transitions, operation.Transitions) {
			t.Fatalf("got %s, want %s", describe(transitions), describe(operation.Transitions))
		}
		got = append(got, *transitions[2].Reason)
	}
	slices.Sort(got)
	if want := slices.Sorted(slices.Values(codes)); !slices.Equal(got, want) {
		t.Errorf("got reasons %q, want %q", got, want)
	}
}
