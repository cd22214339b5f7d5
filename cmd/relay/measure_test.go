package main

import (
	"fmt"
	"strings"
	"testing"

	"outboxrelay/internal/monitor"
	"outboxrelay/internal/sample"
)

// A round of counting reads some of each scope's parked events, and only if they may be
// shown.
func TestParkedEventsOfThePage(t *testing.T) {
	t.Parallel()
	for details, want := range map[string]int{"true": parkedOfAll, "false": 0} {
		t.Run(details, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			var names []string
			for i := range 12 {
				names = append(names, fmt.Sprint("tenant-", i))
			}
			s.env["RELAY_TENANTS"], s.env["RELAY_HTTP_DETAILS"] = strings.Join(names, ",")+",idle", details
			p := newTestProcess(t, s.env)
			for _, scope := range p.scopes[:12] {
				if err := (sample.Application{Namespace: namespace}).Fill(t.Context(), s.db.Pool(t), scope, parkedOfScope+1, 1); err != nil {
					t.Fatal(err)
				}
			}
			s.change(t, `update aksara_operation_outbox set next_attempt_at = 'infinity', last_error = 'too large'`)
			p.measureBacklog(t.Context())
			page := p.board.Page(monitor.Query{})
			of := map[string]int{}
			for _, e := range page.Parked {
				of[*e.Tenant]++
				if e.Reason != "too large" || e.Created == nil || e.ID == 0 {
					t.Errorf("%+v", e)
				}
			}
			for tenant, n := range of {
				if n != parkedOfScope {
					t.Errorf("%d of %s, want %d", n, tenant, parkedOfScope)
				}
			}
			if len(page.Parked) != want || page.Totals.Parked != 12*(parkedOfScope+1) || page.Counted == nil {
				t.Errorf("%d parked events, want %d; totals %+v", len(page.Parked), want, page.Totals)
			}
			if _, body := ask(p, "/metrics"); !strings.Contains(body, "relay_parked_events 132\n") {
				t.Error("the metrics count otherwise")
			}
		})
	}
}
