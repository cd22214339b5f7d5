package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
)

// The statements of a loop that takes one row at a time, by the rules of Aksara's own exporter: what may be claimed, what a
// claim writes, what marks a row. They are made as quick as such a loop can be, so that the comparison is a fair one: the
// claim walks the pending index in its order, where Aksara orders by id, and a transaction is one round trip.
const (
	setScope = `select set_config('aksara.current_tenant_id', $1, true)`

	claimOne = `
		update aksara_operation_outbox o
		set claimed_by = 'loop', claim_expires_at = clock_timestamp() + interval '30 seconds', export_attempts = export_attempts + 1
		where o.id = (
			select due.id from aksara_operation_outbox due
			where due.tenant_scope = $1 and due.exported_at is null and due.next_attempt_at <= statement_timestamp()
			  and (due.claim_expires_at is null or due.claim_expires_at <= statement_timestamp())
			  and (select op.application_namespace = $2 from aksara_operations op where op.id = due.operation_id)
			order by due.next_attempt_at, due.id
			limit 1
			for update of due skip locked)
		returning o.id, o.operation_id, o.topic, o.created_at, o.payload::text`

	markOne = `
		update aksara_operation_outbox
		set exported_at = clock_timestamp(), claimed_by = null, claim_expires_at = null, last_error = null
		where id = $1 and tenant_scope = $2 and claimed_by = 'loop' and exported_at is null`
)

// oneByOne is the loop.
type oneByOne struct {
	conn   *pgx.Conn
	client *kgo.Client
}

// runOneByOne has the loop take some of the backlog, of each tenant in turn.
func (s *stage) runOneByOne(ctx context.Context, d database, t topic) (went drained, err error) {
	conn, err := pgx.Connect(ctx, d.url(relayRole))
	if err != nil {
		return went, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	client, err := t.producer()
	if err != nil {
		return went, err
	}
	defer client.Close()
	before, err := s.look(ctx)
	if err != nil {
		return went, err
	}
	loop, tenants := oneByOne{conn, client}, scopes(s.tenants)
	for i := range s.oneByOne {
		if err := loop.relayOne(ctx, tenants[i%len(tenants)]); err != nil {
			return went, err
		}
		if i == 0 {
			went.first = time.Since(before.at)
		}
	}
	went.elapsed = time.Since(before.at)
	after, err := s.look(ctx)
	if err != nil {
		return went, err
	}
	went.usage, went.rows = after.since(before), s.oneByOne
	return went, t.expect(ctx, went.rows)
}

// relayOne claims a row, sends its event, and marks it.
func (l oneByOne) relayOne(ctx context.Context, tenant envelope.Scope) error {
	row, id := outboxRow{tenant: tenant.Stored()}, int64(0)
	err := l.transaction(ctx, tenant, func(b *pgx.Batch) {
		b.Queue(claimOne, tenant.Stored(), application.Namespace).QueryRow(func(r pgx.Row) error {
			return r.Scan(&id, &row.operation, &row.topic, &row.created, &row.payload)
		})
	})
	if err != nil {
		return err
	}
	record, err := row.record()
	if err != nil {
		return err
	}
	if err := l.client.ProduceSync(ctx, record).FirstErr(); err != nil {
		return err
	}
	return l.transaction(ctx, tenant, func(b *pgx.Batch) {
		b.Queue(markOne, id, tenant.Stored()).Exec(func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() != 1 {
				return errors.New("the loop lost its claim")
			}
			return nil
		})
	})
}

// transaction runs statements for a tenant. A batch is one transaction and one round trip.
func (l oneByOne) transaction(ctx context.Context, tenant envelope.Scope, queue func(*pgx.Batch)) error {
	b := &pgx.Batch{}
	b.Queue(setScope, tenant.Stored())
	queue(b)
	return l.conn.SendBatch(ctx, b).Close()
}
