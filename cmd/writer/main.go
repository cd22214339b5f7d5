// Command writer writes transitions of operations to an outbox as an application on Aksara does, until it is stopped: a
// source of events for compose.yaml and for trying things out. Where the database is say libpq's PG* variables.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"outboxrelay/envelope"
	"outboxrelay/internal/sample"
)

func main() {
	var w writer
	flag.StringVar(&w.Namespace, "namespace", "orders", "the application's namespace")
	tenants := flag.String("tenants", "acme,globex", "the tenants to write for, in turn")
	every := flag.Duration("every", time.Second, "the time between two transitions")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := w.run(ctx, strings.Split(*tenants, ","), *every)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "writer: %v\n", err)
		os.Exit(1)
	}
}

// steps are an operation's transitions behind its first, as event and state.
var steps = [][2]string{{"claimed", "running"}, {"succeeded", "succeeded"}}

// writer is an application, with one operation of each tenant that goes on.
type writer struct {
	sample.Application
	pool *pgxpool.Pool
}

// operation is what an application does for a tenant, and how far it is.
type operation struct {
	scope envelope.Scope
	id    uuid.UUID
	done  int
}

// run writes a transition each time, for one tenant after the other, until ctx ends.
func (w *writer) run(ctx context.Context, tenants []string, every time.Duration) (err error) {
	if w.pool, err = pgxpool.New(ctx, ""); err != nil {
		return err
	}
	defer w.pool.Close()
	var operations []*operation
	for _, tenant := range tenants {
		scope, err := envelope.Tenant(tenant)
		if err != nil {
			return fmt.Errorf("-tenants: %w", err)
		}
		operations = append(operations, &operation{scope: scope})
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for n := 0; ; n++ {
		if err := w.step(ctx, operations[n%len(operations)]); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// step writes an operation's next transition, or the first one of a new operation.
func (w *writer) step(ctx context.Context, o *operation) (err error) {
	event := "admitted"
	if o.done == 0 {
		o.id, err = w.Admit(ctx, w.pool, o.scope)
	} else {
		event = steps[o.done-1][0]
		err = w.Advance(ctx, w.pool, o.scope, o.id, event, steps[o.done-1][1])
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s: operation %s, version %d: %s\n", o.scope, o.id, o.done+1, event)
	o.done = (o.done + 1) % (len(steps) + 1)
	return nil
}
