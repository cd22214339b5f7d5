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
func (s *Store) Due(ctx context.Context, scopes []envelope.Scope) ([]time.Duration, error) {
	if len(scopes) == 0 {
		return nil, nil
	}
	stored := make([]string, len(scopes))
	times, ids := make([]pgtype.Timestamptz, len(scopes)), make([]int64, len(scopes))
	for i, scope := range scopes {
		start := s.walks.start(scope)
		stored[i], times[i], ids[i] = scope.Stored(), start.due, start.id
	}
	return lookAt(ctx, s, scopes, s.sql.due, func(row pgx.CollectableRow) (time.Duration, error) {
		var left *float64
		if err := row.Scan(&left); err != nil || left == nil {
			return relay.Never, err
		}
		return duration(*left), nil
	}, stored, times, ids)
}

// lookAt runs a statement that answers for several scopes, in their order.
func lookAt[T any](ctx context.Context, s *Store, scopes []envelope.Scope, sql string, scan pgx.RowToFunc[T], args ...any) (answers []T, err error) {
	err = s.inScope(ctx, scopes[0], func(b *pgx.Batch) {
		b.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
			answers, err = pgx.CollectRows(rows, scan)
			return err
		})
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("look for rows of %s and %d other scopes: %w", scopes[0], len(scopes)-1, err)
	case len(answers) != len(scopes):
		return nil, fmt.Errorf("looked for rows of %d scopes and got %d answers: report this as a bug", len(scopes), len(answers))
	}
	return answers, nil
}
