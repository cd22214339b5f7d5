package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill"
	watersql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/components/forwarder"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// keyField is the metadata's field that becomes the record's key.
const keyField = "operation_id"

// row is what of Aksara's outbox becomes a message.
type row struct {
	transaction, id, operation, tenant, topic, created string

	payload []byte
}

// fill writes what is in Aksara's outbox to Watermill's, in the same order and as many transactions.
func fill(ctx context.Context, o options) error {
	conn, err := pgx.Connect(ctx, o.database)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := outbox(ctx, conn)
	if err != nil {
		return fmt.Errorf("read the outbox: %w", err)
	}
	if err := makeTables(conn); err != nil {
		return fmt.Errorf("make Watermill's tables: %w", err)
	}
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].transaction == rows[0].transaction {
			n++
		}
		if err := publish(ctx, conn, o.topic, rows[:n]); err != nil {
			return fmt.Errorf("publish to Watermill's table: %w", err)
		}
		rows = rows[n:]
	}
	return nil
}

func outbox(ctx context.Context, conn *pgx.Conn) ([]row, error) {
	rows, err := conn.Query(ctx, `
		select xmin::text, id::text, operation_id::text, tenant_scope, topic,
		       to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), payload::text
		from aksara_operation_outbox order by id`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (one row, err error) {
		err = r.Scan(&one.transaction, &one.id, &one.operation, &one.tenant, &one.topic, &one.created, &one.payload)
		return one, err
	})
}

// makeTables has the subscriber make both of Watermill's tables: the messages', and the one that says how far they are sent.
func makeTables(conn *pgx.Conn) error {
	subscriber, err := subscriberOn(conn, 0)
	if err != nil {
		return err
	}
	return errors.Join(subscriber.SubscribeInitialize(source), subscriber.Close())
}

// publish writes rows as the documentation says: the forwarder's publisher around the SQL one, in the application's
// transaction.
func publish(ctx context.Context, conn *pgx.Conn, topic string, rows []row) error {
	messages := make([]*message.Message, len(rows))
	for i, r := range rows {
		messages[i] = r.message()
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		config := watersql.PublisherConfig{SchemaAdapter: watersql.DefaultPostgreSQLSchema{}}
		inner, err := watersql.NewPublisher(watersql.TxFromPgx(tx), config, watermill.NopLogger{})
		if err != nil {
			return err
		}
		outer := forwarder.NewPublisher(inner, forwarder.PublisherConfig{ForwarderTopic: source})
		return outer.Publish(topic, messages...)
	})
}

// message has the payload's bytes as they are, and around them about as much as the relay's headers tell.
func (r row) message() *message.Message {
	m := message.NewMessage(uuid.NewString(), r.payload)
	m.Metadata = message.Metadata{
		keyField: r.operation, "id": r.id, "tenant_scope": r.tenant, "type": r.topic, "time": r.created,
	}
	return m
}
