package main

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"outboxrelay/internal/monitor"
	"outboxrelay/internal/settings"
	"outboxrelay/kafkasink"
	"outboxrelay/store"
)

// status counts the waiting events of each configured scope, and tells how the slots of exactly-once mode are.
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
	now := time.Now().UTC().Truncate(time.Millisecond)
	answer := monitor.NewStatus(s.Namespace, store.CountCap, &now, all)
	if s.Delivery == settings.ExactlyOnce {
		slots, err := kafkasink.Slots(ctx, sinkConfig(s, nil))
		if err != nil {
			answer.SlotsError = err.Error() // counts are of use without it
		}
		for _, slot := range slots {
			answer.Slots = append(answer.Slots, monitor.SlotStatus{
				Slot: slot.Slot.ID, State: slot.State, Epoch: slot.Epoch, ProducerID: slot.ProducerID,
				Coordinator: slot.Coordinator, Open: slot.Open.Seconds(), Hangs: slot.Hangs,
			})
		}
	}
	if asJSON {
		return json.NewEncoder(a.stdout).Encode(answer)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "SCOPE\tDUE\tIN FLIGHT\tDELAYED\tPARKED\tOLDEST DUE")
	for i, st := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Scopes[i], count(st.Due), count(st.InFlight), count(st.Delayed),
			count(st.Parked), seconds(st.OldestDue).Round(time.Millisecond))
	}
	if s.Delivery == settings.ExactlyOnce {
		printSlots(w, answer)
	}
	return w.Flush()
}

// printSlots prints what brokers say of slots below the scopes.
func printSlots(w *tabwriter.Writer, answer monitor.Status) {
	_ = w.Flush() // an error comes again at the end; these columns have widths of their own
	if answer.SlotsError != "" {
		fmt.Fprintf(w, "\nslots: %s\n", printable(answer.SlotsError))
		return
	}
	fmt.Fprintln(w, "\nSLOT\tSTATE\tEPOCH\tPRODUCER ID\tCOORDINATOR\tOPEN FOR")
	for _, slot := range answer.Slots {
		open := seconds(slot.Open).Round(time.Millisecond).String()
		if slot.Hangs {
			open += ", hangs"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\n", printable(slot.Slot), printable(slot.State), slot.Epoch, slot.ProducerID, slot.Coordinator, open)
	}
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
