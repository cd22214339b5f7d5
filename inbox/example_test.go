package inbox_test

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
	"outboxrelay/inbox"
)

// One record of a Kafka client, here franz-go's, is handled in one transaction. Its offset is committed afterwards.
func ExampleTake() {
	var pool *pgxpool.Pool // the consumer's own database
	_ = func(ctx context.Context, r *kgo.Record) error {
		record := envelope.Record{Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			record.Headers = append(record.Headers, envelope.Header{Key: h.Key, Value: h.Value})
		}
		event, err := envelope.Parse(record)
		if err != nil {
			return err // stop here: passed over, it would be lost
		}
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			outcome, err := inbox.Take(ctx, tx, "billing", event)
			if err != nil || outcome == inbox.Duplicate {
				return err
			}
			if outcome == inbox.Stale {
				_, err = tx.Exec(ctx, "update ledger set steps = steps + 1 where operation = $1", event.OperationID)
				return err
			}
			_, err = tx.Exec(ctx, "update ledger set steps = steps + 1, data = $2 where operation = $1", event.OperationID, event.Data)
			return err
		})
	}
}
