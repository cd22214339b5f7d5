package main

import (
	"context"
	"encoding/json"
	"flag"
	"slices"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/internal/settings"
	"outboxrelay/kafkasink"
	"outboxrelay/relay"
)

// onceTimeout bounds the wait for Kafka before the first event.
const onceTimeout = 15 * time.Second

// onceAnswer is what "relay once" prints.
type onceAnswer struct {
	Outcome  string `json:"outcome"`
	Exported int    `json:"exported"`
	Error    string `json:"error,omitempty"`
}

// once exports events of one scope, one at a time, as Aksara's export_once does.
func (a *app) once(ctx context.Context, args []string) error {
	set := flags("once")
	most := set.Int("max", 1, "export up to `N` events instead of one")
	scope, s, err := a.scopeCommand(set, args)
	if err != nil {
		return err
	}
	if s.Delivery == settings.ExactlyOnce {
		return usageError("once is not for exactly-once mode: set RELAY_DELIVERY=at-least-once, or use run")
	}
	if *most < 1 {
		return usageError("--max must be 1 or more")
	}
	db, err := openStore(s)
	if err != nil {
		return err
	}
	defer db.Close()
	sink, err := kafkasink.New(sinkConfig(s, nil))
	if err != nil {
		return err
	}
	defer sink.Close()
	r, err := relay.New(relayConfig(s, sink, db), db, sink, nil)
	if err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, onceTimeout)
	defer cancel()
	_ = sink.AwaitReady(wait, scope) // if it isn't, the first outcome says why

	var answer onceAnswer
	for range *most {
		outcome, err := r.ExportOnce(ctx, scope)
		if err != nil && outcome != relay.SinkFailed {
			return err
		}
		answer.Outcome = outcome.String()
		if err != nil {
			answer.Error = err.Error()
		}
		if outcome != relay.Exported {
			break
		}
		answer.Exported++
	}
	if err := json.NewEncoder(a.stdout).Encode(answer); err != nil {
		return err
	}
	if answer.Error != "" || answer.Outcome == relay.ClaimLost.String() {
		return errSilent
	}
	return nil
}

// scopeCommand parses the flags of a command about one scope and loads the settings.
// The scope must be a configured one.
func (a *app) scopeCommand(set *flag.FlagSet, args []string) (envelope.Scope, *settings.Settings, error) {
	choice := scopeFlags(set)
	if err := parse(set, args); err != nil {
		return envelope.Scope{}, nil, err
	}
	return a.chosenScope(choice)
}

// scopeChoice is how a command line names a scope.
type scopeChoice struct {
	tenant    string
	nonTenant bool
}

func scopeFlags(set *flag.FlagSet) *scopeChoice {
	c := &scopeChoice{}
	set.StringVar(&c.tenant, "tenant", "", "the scope of tenant `ID`")
	set.BoolVar(&c.nonTenant, "non-tenant", false, "the scope outside any tenant")
	return c
}

// chosenScope is the configured scope that a command line names, and the settings.
func (a *app) chosenScope(c *scopeChoice) (envelope.Scope, *settings.Settings, error) {
	var none envelope.Scope
	if (c.tenant == "") == !c.nonTenant {
		return none, nil, usageError("give either --tenant ID or --non-tenant")
	}
	s, err := a.settings()
	if err != nil {
		return none, nil, err
	}
	scope := envelope.NonTenant()
	if !c.nonTenant {
		if scope, err = envelope.Tenant(c.tenant); err != nil {
			return none, nil, usageError(err.Error())
		}
	}
	return scope, s, configured(s, scope)
}

// configured errs unless the scope is one of those that the settings name.
func configured(s *settings.Settings, scope envelope.Scope) error {
	if !slices.Contains(s.Scopes, scope) {
		return usageError(scope.String() + " is not configured: see RELAY_TENANTS and RELAY_NON_TENANT")
	}
	return nil
}
