package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/terminal"
)

// outcome is all that there is to judge the relay by.
type outcome struct {
	written    []transition // in order for each operation
	topic      []*delivery  // in the order of each partition
	table      []outboxRow
	operations map[uuid.UUID]int64 // state_version as the database has it now
	notRelayed string              // the tenant whose rows must be untouched
	repeated   transition          // the event that must have come twice; none if each must have come once
}

// outboxRow is a row of the outbox at the end.
type outboxRow struct {
	Operation   uuid.UUID
	TenantScope string
	Version     int64
	Payload     string
	Exported    bool
	Claimed     bool
	Attempts    int
	LastError   string
}

func (r *outboxRow) transition() transition {
	return transition{r.TenantScope, r.Operation, r.Version}
}

// check holds the topic and the table against what the application wrote.
func (d *demo) check(ctx context.Context) error {
	d.screen.act("6. The books are checked", "The topic and the table against what the application wrote.")
	o, err := d.outcome(ctx)
	if err != nil {
		return err
	}
	d.screen.print("%s\n", o.summary())
	problems := o.problems()
	if len(problems) > 0 {
		return fmt.Errorf("not everything arrived as promised:\n  %s", strings.Join(problems, "\n  "))
	}
	for _, line := range o.findings() {
		d.screen.print("  %s %s\n", d.screen.brush.Paint(terminal.Green, "ok"), line)
	}
	return nil
}

// outcome reads the table, and the topic to its end.
func (d *demo) outcome(ctx context.Context) (o outcome, err error) {
	if err := d.awaitTopicRead(ctx); err != nil {
		return o, err
	}
	o = outcome{written: d.application.written(), topic: d.consumer.all(), notRelayed: notRelayed, repeated: d.repeated}
	conn, err := pgx.Connect(ctx, d.postgres.url("postgres"))
	if err != nil {
		return o, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if o.table, err = readOutbox(ctx, conn); err != nil {
		return o, fmt.Errorf("read the outbox: %w", err)
	}
	if o.operations, err = readOperations(ctx, conn); err != nil {
		return o, fmt.Errorf("read the operations: %w", err)
	}
	return o, nil
}

// awaitTopicRead waits until the consumer has read the topic to its end.
func (d *demo) awaitTopicRead(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the consumer did not reach the topic's end within %s", patience))
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !d.options.once && int64(len(d.consumer.all())) < d.kafka.records() { // else the ends of transactions count as well
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func readOutbox(ctx context.Context, conn *pgx.Conn) ([]outboxRow, error) {
	rows, err := conn.Query(ctx, `
		select o.operation_id, o.tenant_scope, t.state_version, o.payload::text, o.exported_at is not null,
		       o.claimed_by is not null or o.claim_expires_at is not null, o.export_attempts, coalesce(o.last_error, '')
		from aksara_operation_outbox o join aksara_operation_transitions t on t.id = o.transition_id
		order by o.id`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[outboxRow])
}

func readOperations(ctx context.Context, conn *pgx.Conn) (map[uuid.UUID]int64, error) {
	versions := map[uuid.UUID]int64{}
	rows, err := conn.Query(ctx, `select id, state_version from aksara_operations`)
	if err != nil {
		return nil, err
	}
	var id uuid.UUID
	var version int64
	_, err = pgx.ForEachRow(rows, []any{&id, &version}, func() error { versions[id] = version; return nil })
	return versions, err
}

// summary is a table with a line for each tenant.
func (o outcome) summary() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 8, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "tenant\twritten\tin the topic\ttwice\texported\tattempts\t")
	for _, tenant := range append(relayed(), o.notRelayed) {
		n := o.count(tenant)
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t", tenant, n.written, n.delivered, n.twice, n.exported, n.attempts)
		if tenant == o.notRelayed {
			fmt.Fprint(w, " not relayed")
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // a strings.Builder takes everything
	return text.String()
}

type counts struct{ written, delivered, twice, exported, attempts int }

func (o outcome) count(tenant string) (n counts) {
	for _, t := range o.written {
		if t.tenant == tenant {
			n.written++
		}
	}
	seen := map[transition]bool{}
	for _, d := range o.topic {
		if t := d.transition(); d.malformed == nil && t.tenant == tenant {
			n.delivered++
			if seen[t] {
				n.twice++
			}
			seen[t] = true
		}
	}
	for _, r := range o.table {
		if r.TenantScope == tenant {
			n.attempts += r.Attempts
			if r.Exported {
				n.exported++
			}
		}
	}
	return n
}
