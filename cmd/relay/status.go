package main

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/store"
)

// scopeStatus is one scope in the answer of "relay status --json". Counts of
// store.CountCap mean that many or more.
type scopeStatus struct {
	Tenant    *string `json:"tenant"` // null for the non-tenant scope
	Due       int     `json:"due"`
	InFlight  int     `json:"in_flight"`
	Delayed   int     `json:"delayed"`
	Parked    int     `json:"parked"`
	OldestDue float64 `json:"oldest_due_seconds"`
}

// status counts the waiting events of each configured scope.
func (a *app) status(ctx context.Context, args []string) error {
	s, asJSON, err := a.reporting("status", args)
	if err != nil {
		return err
	}
	db, err := openStore(s)
	if err != nil {
		return err
	}
	defer db.Close()
	var all []scopeStatus
	for _, scope := range s.Scopes {
		st, err := db.Status(ctx, s.Namespace, scope)
		if err != nil {
			return err
		}
		all = append(all, toScopeStatus(scope, st))
	}
	if asJSON {
		return json.NewEncoder(a.stdout).Encode(map[string]any{
			"namespace": s.Namespace, "count_cap": store.CountCap, "scopes": all,
		})
	}
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "SCOPE\tDUE\tIN FLIGHT\tDELAYED\tPARKED\tOLDEST DUE")
	for i, st := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Scopes[i], count(st.Due), count(st.InFlight), count(st.Delayed),
			count(st.Parked), time.Duration(st.OldestDue*float64(time.Second)).Round(time.Millisecond))
	}
	return w.Flush()
}

func toScopeStatus(scope envelope.Scope, st store.Status) scopeStatus {
	out := scopeStatus{
		Due: st.Due, InFlight: st.InFlight, Delayed: st.Delayed, Parked: st.Parked, OldestDue: st.OldestDue.Seconds(),
	}
	if id, ok := scope.Tenant(); ok {
		out.Tenant = &id
	}
	return out
}

// count is a number, or that it is the cap or more.
func count(n int) string {
	if n >= store.CountCap {
		return fmt.Sprintf("%d+", store.CountCap)
	}
	return fmt.Sprint(n)
}
