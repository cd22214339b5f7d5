package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"outboxrelay/relay"
)

// Renew implements [relay.Store].
func (s *Store) Renew(ctx context.Context, claim relay.Claim, ids []int64, lease time.Duration) (held []int64, err error) {
	claim.Token = relay.Unmarked(claim.Token)
	return s.renew(ctx, claim, ids, lease)
}

// renew gives rows that the claim holds a new lease, and the marks that stand behind its token.
func (s *Store) renew(ctx context.Context, claim relay.Claim, ids []int64, lease time.Duration) (held []int64, err error) {
	ids = slices.Sorted(slices.Values(ids))
	err = s.inScope(ctx, claim.Scope, func(b *pgx.Batch) {
		b.Queue(s.sql.renew, ids, claim.Token, seconds(lease)).Query(func(rows pgx.Rows) (err error) {
			held, err = pgx.AppendRows(held[:0], rows, pgx.RowTo[int64])
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("renew claim: %w", err)
	}
	return held, nil
}
