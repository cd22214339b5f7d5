package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"outboxrelay/relay"
)

// recheck is when a row behind a parked one is looked at again.
const recheck = 24 * time.Hour

// Claim implements [relay.Store].
func (s *Store) Claim(ctx context.Context, req relay.Request) (relay.Claim, error) {
	indexed, err := s.indexed(ctx)
	if err != nil {
		return relay.Claim{}, err
	}
	claim := relay.Claim{Scope: req.Scope, Token: req.Token, Expires: time.Now().Add(req.Lease)}
	start := s.walks.start(req.Scope)
	var first pgtype.Timestamptz
	err = s.inScope(ctx, req.Scope, func(b *pgx.Batch) {
		b.Queue(s.claimText(req.Rows, indexed), req.Scope.Stored(), req.Namespace, req.Token,
			seconds(req.Lease), seconds(recheck), start, req.Bytes,
		).Query(func(rows pgx.Rows) (err error) {
			first, err = scanClaim(rows, &claim)
			return err
		})
	})
	if err != nil {
		s.lookAgain()
		return relay.Claim{}, fmt.Errorf("claim of %s: %w", req.Scope, err)
	}
	// The statement promises this; what the update returns comes in no promised order.
	slices.SortFunc(claim.Rows, func(a, b relay.Row) int { return cmp.Compare(a.ID, b.ID) })
	full := claim.Seen >= req.Rows
	claim.More = full || claim.Pushed > 0 || len(claim.Rows) < claim.Seen && len(claim.Rows) > 0
	s.walks.claimed(req.Scope, start, full, first)
	if len(claim.Rows) > req.Rows {
		return relay.Claim{}, fmt.Errorf("claimed %d rows where %d were asked for: report this as a bug", len(claim.Rows), req.Rows)
	}
	return claim, nil
}

// scanClaim reads the answer of the claim statement.
func scanClaim(rows pgx.Rows, claim *relay.Claim) (first pgtype.Timestamptz, err error) {
	for rows.Next() {
		var (
			id       *int64
			op       *uuid.UUID
			topic    *string
			created  pgtype.Timestamptz
			attempts *int
			expired  *string
			bytes    *int64
			payload  []byte
		)
		if err := rows.Scan(&claim.Seen, &claim.Pushed, &first, &id, &op, &topic, &created, &attempts, &expired, &bytes, &payload); err != nil {
			return first, fmt.Errorf("read claimed rows: %w", err)
		}
		if id == nil {
			continue
		}
		row := relay.Row{
			ID: *id, OperationID: *op, CreatedAt: instant(created), Type: *topic,
			Payload: payload, Bytes: *bytes, Attempts: *attempts,
		}
		if expired != nil {
			row.Expired = *expired
		}
		claim.Rows = append(claim.Rows, row)
	}
	return first, rows.Err()
}
