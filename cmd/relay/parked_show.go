package main

import (
	"context"
	"errors"
	"fmt"

	"outboxrelay/envelope"
	"outboxrelay/internal/settings"
	"outboxrelay/store"
)

// parkedListCap is the most events that one list shows.
const parkedListCap = 10_000

// parkedList lists the parked events of one scope, or of all configured ones.
func (a *app) parkedList(ctx context.Context, args []string) error {
	set := flags("parked list")
	asJSON := set.Bool("json", false, jsonMeans)
	choice := scopeFlags(set)
	if err := parse(set, args); err != nil {
		return err
	}
	scopes, s, err := a.chosenScopes(choice)
	if err != nil {
		return err
	}
	db, err := openStore(s)
	if err != nil {
		return err
	}
	defer db.Close()
	var out parkedPrinter = newParkedTable(a.stdout)
	if *asJSON {
		out = newParkedLines(a.stdout)
	}
	more, err := listParked(ctx, db, s.Namespace, scopes, out)
	if err := errors.Join(err, out.close()); err != nil {
		return err
	}
	if more {
		fmt.Fprintf(a.stderr, "relay parked: these are the first %d; there are more\n", parkedListCap)
	}
	return nil
}

// chosenScopes is the scope that a command line names, or all configured ones.
func (a *app) chosenScopes(choice *scopeChoice) ([]envelope.Scope, *settings.Settings, error) {
	if *choice != (scopeChoice{}) {
		scope, s, err := a.chosenScope(choice)
		return []envelope.Scope{scope}, s, err
	}
	s, err := a.settings()
	if err != nil {
		return nil, nil, err
	}
	return s.Scopes, s, nil
}

// listParked prints events as they are read; more tells that there are others.
func listParked(ctx context.Context, db *store.Store, namespace string, scopes []envelope.Scope, out parkedPrinter) (more bool, err error) {
	n := 0
	for _, scope := range scopes {
		for e, err := range db.Parked(ctx, namespace, scope) {
			if err != nil {
				return false, err
			}
			if n++; n > parkedListCap {
				return true, nil
			}
			if err := out.print(parkedEvent{Event: e, scope: scope}); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// parkedShow prints all that is known of single events, but the payload only if asked.
func (a *app) parkedShow(ctx context.Context, args []string) error {
	set := flags("parked show")
	asJSON := set.Bool("json", false, jsonMeans)
	withPayload := set.Bool("payload", false, "show what the events hold, too")
	c, err := a.chooseParked(set, args)
	if err != nil {
		return err
	}
	defer c.Close()
	var out parkedPrinter = &parkedSheets{w: a.stdout}
	if *asJSON {
		out = newParkedLines(a.stdout)
	}
	events, err := c.events(ctx)
	if err != nil {
		return err
	}
	for _, e := range events {
		shown := parkedEvent{Event: e, scope: c.scope, withPayload: *withPayload}
		if *withPayload {
			if shown.payload, err = c.Payload(ctx, c.namespace, c.scope, e.ID); err != nil {
				return err
			}
		}
		if err := out.print(shown); err != nil {
			return err
		}
	}
	return c.conclusion()
}
