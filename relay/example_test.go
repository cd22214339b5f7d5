package relay_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

// printer is a sink that prints events. It refuses those of one type.
type printer struct{ printed chan<- struct{} }

// Ready says that events of every scope can be printed.
func (p printer) Ready(envelope.Scope) error { return nil }

// Publish prints the events, and answers each before it returns.
func (p printer) Publish(ctx context.Context, events []envelope.Event, answer func(int, error)) {
	for i, e := range events {
		if ctx.Err() != nil {
			// It certainly was not printed, and that is not the event's fault.
			answer(i, relay.NotAttempted.Wrap(ctx.Err()))
			continue
		}
		if e.Type == "unprintable" {
			answer(i, relay.RowFault.Wrap(errors.New("type is not one that can be printed")))
			continue
		}
		fmt.Printf("%s %s %s\n", e.Source(), e.ID(), e.Data)
		answer(i, nil)
		p.printed <- struct{}{}
	}
}

// A program may bring a sink of its own. Instead of the outbox in memory it would take
// one from package store.
func Example_ownSink() {
	acme, err := envelope.Tenant("acme")
	if err != nil {
		fmt.Println(err)
		return
	}
	outbox := &relaytest.Store{}
	outbox.Add("orders", acme, uuid.MustParse("5f0c4f0e-0000-4000-8000-000000000001"), 2)

	printed := make(chan struct{}, 2)
	r, err := relay.New(relay.Config{Namespace: "orders"}, outbox, printer{printed}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	r.SetScopes([]envelope.Scope{acme})

	ctx, cancel := context.WithCancel(context.Background())
	go func() { // a program would wait for a signal
		<-printed
		<-printed
		cancel()
	}()
	if err := r.Run(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println("exported:", outbox.Rows(acme)[0].Exported, outbox.Rows(acme)[1].Exported)
	// Output:
	// /namespaces/orders/tenants/acme 5f0c4f0e-0000-4000-8000-000000000001:1 {"operation_id": "5f0c4f0e-0000-4000-8000-000000000001", "state_version": 1}
	// /namespaces/orders/tenants/acme 5f0c4f0e-0000-4000-8000-000000000001:2 {"operation_id": "5f0c4f0e-0000-4000-8000-000000000001", "state_version": 2}
	// exported: true true
}
