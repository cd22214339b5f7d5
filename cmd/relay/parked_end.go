package main

import (
	"context"
	"fmt"
	"strings"

	"outboxrelay/store"
)

// parkedRetry makes parked events due again.
func (a *app) parkedRetry(ctx context.Context, args []string) error {
	set := flags("parked retry")
	all := set.Bool("all", false, "all parked events of the scope")
	c, err := a.chooseParked(set, args)
	if err != nil {
		return err
	}
	defer c.Close()
	if *all {
		events, behind, err := c.RetryAll(ctx, c.namespace, c.scope)
		fmt.Fprintf(a.stdout, "%d parked events are due again, and %d behind them\n", events, behind)
		return err
	}
	events, err := c.events(ctx)
	if err != nil {
		return err
	}
	done, err := c.Retry(ctx, c.namespace, c.scope, rowIDs(events))
	return a.parkedEnded(c, events, done, err, "is due again, and %d behind it")
}

// parkedDiscard gives parked events up.
func (a *app) parkedDiscard(ctx context.Context, args []string) error {
	set := flags("parked discard")
	reason := set.String("reason", "", "`TEXT` that is kept with the event")
	c, err := a.chooseParked(set, args)
	if err != nil {
		return err
	}
	defer c.Close()
	if strings.TrimSpace(*reason) == "" {
		return usageError("say why with --reason TEXT: it stays with the event")
	}
	events, err := c.events(ctx)
	if err != nil {
		return err
	}
	done, err := c.Discard(ctx, c.namespace, c.scope, rowIDs(events), *reason)
	return a.parkedEnded(c, events, done, err, "is discarded; %d behind it are due")
}

func rowIDs(events []*store.Event) []int64 {
	ids := make([]int64, len(events))
	for i, e := range events {
		ids[i] = e.ID
	}
	return ids
}

// parkedEnded tells what was done, also if an error followed; what takes the number of
// events behind.
func (a *app) parkedEnded(c *chosen, events []*store.Event, done []store.Ended, err error, what string) error {
	behind := map[int64]int{}
	for _, e := range done {
		behind[e.ID] = e.Behind
	}
	for _, e := range events {
		if n, ok := behind[e.ID]; ok {
			fmt.Fprintf(a.stdout, "%d (%s) "+what+"\n", e.ID, eventName(e), n)
		} else if err == nil {
			c.complain("%d: no longer parked: somebody was faster", e.ID)
		}
	}
	if err != nil {
		return err
	}
	return c.conclusion()
}
