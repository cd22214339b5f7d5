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

const (
	// recheck is when a row behind a parked one is looked at again.
	recheck = 24 * time.Hour

	// fewestLooks is how many due rows also a claim of one row looks at: it would need
	// many claims to get past rows that can't be taken.
	fewestLooks = 200
)

// Claim implements [relay.Store].
func (s *Store) Claim(ctx context.Context, req relay.Request) (relay.Claim, error) {
	indexed, err := s.indexed(ctx)
	if err != nil {
		return relay.Claim{}, err
	}
	look := look{start: s.walks.start(req.Scope), began: time.Now()}
	if req.Abandoned {
		var known bool
		if look.start, known = s.walks.abandonedAt(req.Scope); !known {
			return relay.Claim{Scope: req.Scope, Token: req.Token}, nil
		}
	}
	claim := relay.Claim{Scope: req.Scope, Token: req.Token, Expires: look.began.Add(req.Lease)}
	err = s.inScope(ctx, req.Scope, func(b *pgx.Batch) {
		b.Queue(s.claimText(req, indexed), req.Scope.Stored(), req.Namespace, req.Token,
			seconds(req.Lease), seconds(recheck), look.start.due, look.start.id, req.Bytes,
		).Query(func(rows pgx.Rows) error { return scanClaim(rows, &claim, &look) })
	})
	if err != nil {
		s.lookAgain()
		return relay.Claim{}, fmt.Errorf("claim of %s: %w", req.Scope, err)
	}
	// The statement promises this; what the update returns comes in no promised order.
	slices.SortFunc(claim.Rows, func(a, b relay.Row) int { return cmp.Compare(a.ID, b.ID) })
	look.taken = len(claim.Rows) > 0 || claim.Pushed > 0
	look.more = look.more || claim.Seen >= looks(req.Rows)
	if !req.Abandoned {
		claim.More = s.walks.claimed(req.Scope, look) || claim.Pushed > 0
	}
	claim.Abandoned = s.walks.abandoned(req.Scope, look, req.Abandoned)
	if err := s.readLarge(ctx, &claim); err != nil {
		return relay.Claim{}, fmt.Errorf("read payloads of %s: %w", req.Scope, err)
	}
	if len(claim.Rows) > req.Rows {
		return relay.Claim{}, fmt.Errorf("claimed %d rows where %d were asked for: report this as a bug", len(claim.Rows), req.Rows)
	}
	return claim, nil
}

// readLarge reads the payloads that were too large to come with the claim.
func (s *Store) readLarge(ctx context.Context, claim *relay.Claim) error {
	var ids []int64
	rows := map[int64]*relay.Row{}
	for i := range claim.Rows {
		row := &claim.Rows[i]
		if row.Payload == nil && row.Bytes > mostInline && row.Bytes <= mostPayload && relay.Marks(claim.Token) <= relay.MostMarks {
			ids = append(ids, row.ID)
			rows[row.ID] = row
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return s.inScope(ctx, claim.Scope, func(b *pgx.Batch) {
		b.Queue(s.sql.payload, claim.Scope.Stored(), ids, claim.Token).Query(func(answer pgx.Rows) error {
			var id int64
			var payload []byte
			_, err := pgx.ForEachRow(answer, []any{&id, &payload}, func() error {
				rows[id].Payload = slices.Clone(payload)
				return nil
			})
			return err
		})
	})
}

// looks is how many due rows a claim of so many rows looks at.
func looks(rows int) int { return max(rows, fewestLooks) }

// scanClaim reads the answer of the claim statement.
func scanClaim(rows pgx.Rows, claim *relay.Claim, look *look) error {
	for rows.Next() {
		var (
			endID    *int64
			ours     int
			left     *int64
			passed   *int64
			token    *string
			id       *int64
			op       *uuid.UUID
			topic    *string
			created  pgtype.Timestamptz
			attempts *int
			expired  *string
			bytes    *int64
			payload  []byte
		)
		if err := rows.Scan(&look.more, &claim.Seen, &ours, &claim.Pushed, &look.end.due, &endID, &look.abandoned.due, &left,
			&look.passed.due, &passed, &look.clock, &id, &op, &topic, &created, &attempts, &token, &expired, &bytes, &payload); err != nil {
			return fmt.Errorf("read claimed rows: %w", err)
		}
		if endID != nil {
			look.end.id = *endID
		}
		if claim.Seen > 0 {
			look.foreign = float64(claim.Seen-ours) / float64(claim.Seen)
		}
		if passed != nil {
			look.passed.id = *passed - 1
		}
		if left != nil {
			look.abandoned.id = *left - 1 // the walk begins behind it
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
		claim.Token = *token
		claim.Rows = append(claim.Rows, row)
	}
	return rows.Err()
}
