package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"outboxrelay/envelope"
	"outboxrelay/store"
)

const parkedArgs = "list | show ID... [--payload] | retry ID...|--all | discard ID... --reason TEXT  [--tenant ID | --non-tenant] [--json]"

// parked deals with events that can't be sent as they are.
func (a *app) parked(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch rest := args[1:]; args[0] {
		case "list":
			return a.parkedList(ctx, rest)
		case "show":
			return a.parkedShow(ctx, rest)
		case "retry":
			return a.parkedRetry(ctx, rest)
		case "discard":
			return a.parkedDiscard(ctx, rest)
		}
	}
	if err := parse(flags("parked"), args); err != nil {
		return err // it may ask for help
	}
	return usageError("say what to do: list, show, retry or discard")
}

// chosen is the events of one scope that a command line names, and where they are.
type chosen struct {
	*store.Store
	namespace string
	scope     envelope.Scope
	ids       []store.EventID

	stderr io.Writer
	failed bool // something was said on stderr
}

// chooseParked parses the command line of a sub-command on single events of one scope.
func (a *app) chooseParked(set *flag.FlagSet, args []string) (*chosen, error) {
	choice := scopeFlags(set)
	texts, err := parseMixed(set, args)
	if err != nil {
		return nil, err
	}
	c := &chosen{stderr: a.stderr}
	for _, text := range texts {
		id, err := store.ParseEventID(text)
		if err != nil {
			return nil, usageError(err.Error())
		}
		c.ids = append(c.ids, id)
	}
	if all := set.Lookup("all"); (all != nil && all.Value.String() == "true") == (len(c.ids) > 0) {
		return nil, usageError("say which events: relay parked list shows their ids" + orAll(all))
	}
	scope, s, err := a.chosenScope(choice)
	if err != nil {
		return nil, err
	}
	c.namespace, c.scope = s.Namespace, scope
	c.Store, err = openStore(s)
	return c, err
}

func orAll(all *flag.Flag) string {
	if all == nil {
		return ""
	}
	return "; or give --all, and no ids"
}

// events are those among the chosen ones that are parked, each once. Of the others it
// says why they are not among them.
func (c *chosen) events(ctx context.Context) (events []*store.Event, err error) {
	found, err := c.Find(ctx, c.namespace, c.scope, c.ids)
	if err != nil {
		return nil, err
	}
	seen := map[int64]bool{}
	for i, e := range found {
		switch {
		case e == nil && c.ids[i].ByRow():
			c.complain("%s: %s has no such event", c.ids[i], c.scope)
		case e == nil:
			c.complain("%s: %s has no such event that isn't exported", c.ids[i], c.scope)
		case e.State != store.Parked && e.Error != "":
			c.complain("%s: not parked, but %s (%s)", c.ids[i], e.State, printable(e.Error))
		case e.State != store.Parked:
			c.complain("%s: not parked, but %s", c.ids[i], e.State)
		case !seen[e.ID]:
			seen[e.ID] = true
			events = append(events, e)
		}
	}
	return events, nil
}

// complain says what is wrong with one event; the command goes on with the others.
func (c *chosen) complain(format string, args ...any) {
	c.failed = true
	fmt.Fprintf(c.stderr, "relay parked: "+format+"\n", args...)
}

// conclusion is nil if there was nothing to complain of.
func (c *chosen) conclusion() error {
	if c.failed {
		return errSilent
	}
	return nil
}
