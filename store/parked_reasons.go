package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"outboxrelay/envelope"
)

// Reasons gives the first parked events of one scope and namespace, at most so many, in
// ascending order of their ids. It is for a look from time to time, so it leaves out what
// is in the payload or has to be counted: state version, size, and what is behind.
func (s *Store) Reasons(ctx context.Context, namespace string, scope envelope.Scope, most int) (events []*Event, err error) {
	err = s.inScope(ctx, scope, func(b *pgx.Batch) {
		b.Queue(s.sql.parkedReasons, scope.Stored(), namespace, most).Query(func(rows pgx.Rows) (err error) {
			events, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (*Event, error) {
				e := &Event{State: Parked}
				var created pgtype.Timestamptz
				err := row.Scan(&e.ID, &e.OperationID, &created, &e.Attempts, &e.Error)
				e.CreatedAt = instant(created)
				return e, err
			})
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read why events of %s are parked: %w", scope, err)
	}
	return events, nil
}
