package store_test

import (
	"fmt"
	"strings"
	"testing"

	"outboxrelay/envelope"
	"outboxrelay/internal/sample"
	"outboxrelay/relay"
)

func TestBacklogCountsAndDoubtsTheNamespace(t *testing.T) {
	t.Parallel()
	in := newInspected(t)
	s := in.open(t, nil)
	acme, bolt, idle := tenant(t, "acme"), tenant(t, "bolt"), tenant(t, "idle")
	for namespace, scope := range map[string]envelope.Scope{"orders": acme, "Orders": bolt, "billing": bolt} {
		if err := (sample.Application{Namespace: namespace}).Fill(t.Context(), in.Pool(t), scope, 2, 3); err != nil {
			t.Fatal(err)
		}
	}
	got := s.Backlog(t.Context(), "orders", []envelope.Scope{acme, bolt, idle, envelope.NonTenant()})
	want := []finding{
		{relay.OK, "waiting events", `tenant "acme": 6 due, 0 in flight, 0 delayed, 0 parked`, ""},
		warning("waiting events", `tenant "bolt": nothing waits in namespace "orders", but events wait in "Orders", "billing"`, "RELAY_NAMESPACE"),
		{relay.OK, "waiting events", `tenant "idle": nothing waits in namespace "orders"; if something should, is the tenant's name right?`, ""},
		{relay.OK, "waiting events", `non-tenant scope: nothing waits in namespace "orders"`, ""},
	}
	wantFindings(t, got, want...)
}

func TestBacklogIsShortForManyScopes(t *testing.T) {
	t.Parallel()
	in := newInspected(t)
	s := in.open(t, nil)
	var scopes []envelope.Scope
	for n := range 150 {
		scopes = append(scopes, tenant(t, fmt.Sprint("t", n)))
	}
	if err := app.Fill(t.Context(), in.Pool(t), scopes[149], 1, 1); err != nil {
		t.Fatal(err)
	}
	got := s.Backlog(t.Context(), "orders", scopes)
	if len(got) != 101 {
		t.Fatalf("%d findings, want 101", len(got))
	}
	if first, last := got[0].Seen, got[100].Seen; !strings.Contains(first, `"t149": 1 due`) || last != "50 more scopes, in which nothing waits" {
		t.Errorf("first %q, last %q", first, last)
	}
}

func TestBacklogTellsAFailureOnce(t *testing.T) {
	t.Parallel()
	in := newInspected(t)
	in.change(t, `revoke select on `+outboxTable+` from ROLE`)
	got := in.open(t, nil).Backlog(t.Context(), "orders", []envelope.Scope{tenant(t, "a"), tenant(t, "b")})
	wantFindings(t, got,
		fault("waiting events", "permission denied", "other checks"),
		fault("waiting events", "1 more scope could not be counted", "other checks"))
}
