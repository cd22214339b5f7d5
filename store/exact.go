package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

// heldLooks is how many rows of a scope are looked at for claims.
const heldLooks = 20_000

var _ relay.ExactStore = (*Store)(nil)

// Held implements [relay.ExactStore].
func (s *Store) Held(ctx context.Context, scopes []envelope.Scope) (held []relay.Held, err error) {
	if len(scopes) == 0 {
		return nil, nil
	}
	stored := make([]string, len(scopes))
	for i, scope := range scopes {
		stored[i] = scope.Stored()
	}
	err = s.inScope(ctx, scopes[0], func(b *pgx.Batch) {
		b.Queue(s.sql.held, stored, heldLooks).Query(func(rows pgx.Rows) (err error) {
			held, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (h relay.Held, err error) {
				var n int
				if err = row.Scan(&n, &h.Token, &h.Rows, &h.Expired); err == nil {
					h.Scope = scopes[n-1]
				}
				return h, err
			})
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("look for claims on rows of %s and %d other scopes: %w", scopes[0], len(scopes)-1, err)
	}
	return held, nil
}

// Durable implements [relay.ExactStore].
func (s *Store) Durable(ctx context.Context) error {
	ctx, cancel := s.limit(ctx)
	defer cancel()
	var fsync bool
	if err := s.pool.QueryRow(ctx, "select current_setting('fsync') = 'on'").Scan(&fsync); err != nil {
		return fmt.Errorf("ask whether commits are durable: %w", explain(ctx, err))
	}
	if !fsync {
		return fmt.Errorf("%w: %s: %s", relay.ErrForgetful, forgetful, remember)
	}
	return nil
}

// Identity implements [relay.ExactStore].
func (s *Store) Identity(ctx context.Context) (identity string, err error) {
	ctx, cancel := s.limit(ctx)
	defer cancel()
	if err := s.pool.QueryRow(ctx, s.sql.identity).Scan(&identity); err != nil {
		return "", fmt.Errorf("ask which database this is: %w", explain(ctx, err))
	}
	return identity + "/" + s.schema, nil
}
