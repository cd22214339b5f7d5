package main

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"outboxrelay/internal/monitor"
	"outboxrelay/store"
)

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
	var all []monitor.ScopeStatus
	for _, scope := range s.Scopes {
		st, err := db.Status(ctx, s.Namespace, scope)
		if err != nil {
			return err
		}
		all = append(all, monitor.NewScopeStatus(scope, counts(st)))
	}
	if asJSON {
		now := time.Now().UTC().Truncate(time.Millisecond)
		return json.NewEncoder(a.stdout).Encode(monitor.NewStatus(s.Namespace, store.CountCap, &now, all))
	}
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "SCOPE\tDUE\tIN FLIGHT\tDELAYED\tPARKED\tOLDEST DUE")
	for i, st := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Scopes[i], count(st.Due), count(st.InFlight), count(st.Delayed),
			count(st.Parked), seconds(st.OldestDue).Round(time.Millisecond))
	}
	return w.Flush()
}

func counts(st store.Status) monitor.Counts {
	return monitor.Counts{
		Due: st.Due, InFlight: st.InFlight, Delayed: st.Delayed, Parked: st.Parked, OldestDue: st.OldestDue.Seconds(),
	}
}

// seconds is a number of them as a duration.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// count is a number, or that it is the cap or more.
func count(n int) string {
	if n >= store.CountCap {
		return fmt.Sprintf("%d+", store.CountCap)
	}
	return fmt.Sprint(n)
}
