package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

// Due implements [relay.Store].
func (s *Store) Due(ctx context.Context, scopes []envelope.Scope) (due []time.Duration, err error) {
	if len(scopes) == 0 {
		return nil, nil
	}
	stored := make([]string, len(scopes))
	times, ids := make([]pgtype.Timestamptz, len(scopes)), make([]int64, len(scopes))
	for i, scope := range scopes {
		start := s.walks.start(scope)
		stored[i], times[i], ids[i] = scope.Stored(), start.due, start.id
	}
	err = s.inScope(ctx, scopes[0], func(b *pgx.Batch) {
		b.Queue(s.sql.due, stored, times, ids).Query(func(rows pgx.Rows) (err error) {
			due, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (time.Duration, error) {
				var left *float64
				if err := row.Scan(&left); err != nil || left == nil {
					return relay.Never, err
				}
				return duration(*left), nil
			})
			return err
		})
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("look for due rows of %s and %d other scopes: %w", scopes[0], len(scopes)-1, err)
	case len(due) != len(scopes):
		return nil, fmt.Errorf("looked for due rows of %d scopes and got %d answers: report this as a bug", len(scopes), len(due))
	}
	return due, nil
}
