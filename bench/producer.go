package main

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
)

// records are the events of all rows as the relay sends them.
func (d database) records(ctx context.Context) (records []*kgo.Record, err error) {
	err = d.stage.connected(ctx, d.name, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `select tenant_scope, operation_id, topic, created_at, payload::text
			from aksara_operation_outbox order by id`)
		if err != nil {
			return err
		}
		records, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (*kgo.Record, error) {
			var r outboxRow
			err := row.Scan(&r.tenant, &r.operation, &r.topic, &r.created, &r.payload)
			if err != nil {
				return nil, err
			}
			return r.record()
		})
		return err
	})
	return records, err
}

// outboxRow is what an event is made of.
type outboxRow struct {
	tenant    string
	operation uuid.UUID
	topic     string
	created   time.Time
	payload   []byte
}

func (r outboxRow) record() (*kgo.Record, error) {
	scope, err := envelope.Tenant(r.tenant)
	if err != nil {
		return nil, err
	}
	event, err := envelope.New(application.Namespace, scope, r.operation, r.topic, r.created, r.payload)
	if err != nil {
		return nil, err
	}
	wire := event.Record()
	record := &kgo.Record{Key: wire.Key, Value: wire.Value}
	for _, header := range wire.Headers {
		record.Headers = append(record.Headers, kgo.RecordHeader(header))
	}
	return record, nil
}

// runProducer sends records that are in memory already, all of them at once: nothing that also reads and marks rows can
// be faster.
func (s *stage) runProducer(ctx context.Context, t topic, records []*kgo.Record) (went drained, err error) {
	client, err := t.producer()
	if err != nil {
		return went, err
	}
	defer client.Close()
	fresh := make([]*kgo.Record, len(records)) // the client writes into what it is given
	for i, r := range records {
		fresh[i] = &kgo.Record{Key: r.Key, Value: r.Value, Headers: r.Headers}
	}
	before, err := s.look(ctx)
	if err != nil {
		return went, err
	}
	if err := client.ProduceSync(ctx, fresh...).FirstErr(); err != nil {
		return went, err
	}
	went.elapsed = time.Since(before.at)
	after, err := s.look(ctx)
	if err != nil {
		return went, err
	}
	went.usage, went.rows = after.since(before), len(records)
	return went, t.expect(ctx, len(records))
}
