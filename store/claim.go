package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"outboxrelay/envelope"
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
	claims, err := s.ClaimAll(ctx, []relay.Request{req})
	if err != nil {
		return relay.Claim{}, err
	}
	return claims[0], nil
}

// ClaimAll implements [relay.Store].
func (s *Store) ClaimAll(ctx context.Context, reqs []relay.Request) ([]relay.Claim, error) {
	indexed, err := s.indexed(ctx)
	if err != nil {
		return nil, err
	}
	claims, looked := make([]relay.Claim, len(reqs)), make([]*look, len(reqs))
	var work []scoped
	for i, req := range reqs {
		began := time.Now()
		claims[i] = relay.Claim{Scope: req.Scope, Token: req.Token, Exact: req.Exact, Expires: began.Add(req.Lease)}
		if l, ok := s.startOf(req); ok {
			l.began = began
			looked[i] = &l
			work = append(work, s.claimWork(req, indexed, &claims[i], looked[i]))
		}
	}
	if len(work) == 0 {
		return claims, nil
	}
	if err := s.inScopes(ctx, work...); err != nil {
		s.lookAgain()
		if refused(err) {
			err = relay.RowFault.Wrap(err)
		}
		return nil, fmt.Errorf("claim of %s: %w", named(reqs), err)
	}
	for i, req := range reqs {
		if looked[i] == nil {
			continue
		}
		if err := s.claimed(ctx, req, &claims[i], looked[i], len(reqs) > 1); err != nil {
			return nil, err
		}
	}
	return claims, nil
}

// named names the scope of a request, or says of how many there are several.
func named(reqs []relay.Request) string {
	if len(reqs) == 1 {
		return reqs[0].Scope.String()
	}
	return fmt.Sprintf("%d scopes at once", len(reqs))
}

// startOf is where a claim begins to look; ok is false if it is for abandoned rows and none are known.
func (s *Store) startOf(req relay.Request) (l look, ok bool) {
	if req.Abandoned {
		l.start, ok = s.walks.abandonedAt(req.Scope)
		return l, ok
	}
	l.start = s.walks.start(req.Scope)
	if req.Rows > 1 { // who asks for one row is told whether there is one
		l.gated, l.past = s.walks.gated(req.Scope)
	}
	return l, true
}

// claimWork is the statement of a claim, which fills claim and look.
func (s *Store) claimWork(req relay.Request, indexed bool, claim *relay.Claim, look *look) scoped {
	limit := s.timings.server
	if req.Limit > 0 {
		limit = min(limit, req.Limit)
	}
	return scoped{scope: req.Scope, limit: limit, queue: func(b *pgx.Batch) {
		arguments := []any{req.Scope.Stored(), req.Namespace, req.Token, seconds(req.Lease), seconds(recheck), look.start.due, look.start.id, req.Bytes}
		if req.Abandoned {
			arguments = append(arguments, marksBelow(req))
		}
		if look.gated {
			arguments = append(arguments, look.past)
			b.Queue(s.sql.gate, s.gate(req.Namespace, req.Scope))
		}
		b.Queue(s.claimText(claimKey{req.Rows, req.Abandoned, req.Exact, look.gated, indexed}), arguments...).Query(func(rows pgx.Rows) error { return scanClaim(rows, claim, look) })
	}}
}

// claimed completes a claim that was made. What is large is read only if the claim was made by itself:
// each takes one row, however large.
func (s *Store) claimed(ctx context.Context, req relay.Request, claim *relay.Claim, look *look, oneOfSeveral bool) error {
	// The statement promises this; what the update returns comes in no promised order.
	slices.SortFunc(claim.Rows, func(a, b relay.Row) int { return cmp.Compare(a.ID, b.ID) })
	look.taken = len(claim.Rows) > 0 || claim.Pushed > 0
	look.more = look.more || claim.Seen >= looks(req.Rows)
	if !req.Abandoned {
		claim.More = s.walks.claimed(req.Scope, *look) || claim.Pushed > 0
	}
	claim.Abandoned = s.walks.abandoned(req.Scope, *look, req.Abandoned)
	if req.Abandoned {
		s.addMark(ctx, claim, req.Lease)
	}
	if oneOfSeveral {
		leaveLarge(claim)
	} else {
		s.readPayloads(ctx, claim)
	}
	if len(claim.Rows) > req.Rows {
		return fmt.Errorf("claimed %d rows where %d were asked for: report this as a bug", len(claim.Rows), req.Rows)
	}
	return nil
}

// leaveLarge leaves payloads that did not come with the claim for one that is made by itself.
func leaveLarge(claim *relay.Claim) {
	for i := range claim.Rows {
		if row := &claim.Rows[i]; row.Payload == nil && row.Bytes <= mostPayload {
			row.Err, claim.More = errLarge, true
		}
	}
}

var errLarge = relay.NotAttempted.Wrap(errors.New("the payload is large, and read when its scope is claimed of by itself"))

// gate is the number by which claims of one scope and namespace keep each other from looking at the same rows.
func (s *Store) gate(namespace string, scope envelope.Scope) int64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, strings.Join([]string{"relay", s.schema, namespace, scope.Stored()}, "\x00")) // it never fails
	return int64(h.Sum64())
}

// marksBelow is how many marks a row has too many for a claim of abandoned rows.
func marksBelow(req relay.Request) int {
	if req.Wary {
		return relay.AloneFrom
	}
	return math.MaxInt32
}

// addMark puts the mark of a claim of abandoned rows behind its token, before anything of
// them is read. Not by the claim itself: if its answer were lost nobody would have held
// them, and they would have the mark.
func (s *Store) addMark(ctx context.Context, claim *relay.Claim, lease time.Duration) {
	if len(claim.Rows) == 0 {
		return
	}
	ids := make([]int64, len(claim.Rows))
	for i := range ids {
		ids[i] = claim.Rows[i].ID
	}
	claim.Token = relay.Marked(claim.Token)
	start := time.Now()
	held, err := s.renew(ctx, *claim, ids, lease)
	if err == nil {
		claim.Expires = start.Add(lease)
	}
	for i := range claim.Rows {
		if !slices.Contains(held, ids[i]) {
			claim.Rows[i].Err = fmt.Errorf("the row was not read: %w", cmp.Or(err, errNotHeld))
		}
	}
}

var errNotHeld = errors.New("its claim did not hold it any more")

// readPayloads reads the payloads that did not come with the claim.
func (s *Store) readPayloads(ctx context.Context, claim *relay.Claim) {
	if relay.Marks(claim.Token) > relay.MostMarks {
		return // this may be what ended their owners
	}
	var ids []int64
	rows := map[int64]*relay.Row{}
	for i := range claim.Rows {
		if row := &claim.Rows[i]; row.Payload == nil && row.Bytes <= mostPayload && row.Err == nil {
			ids = append(ids, row.ID)
			rows[row.ID] = row
		}
	}
	if len(ids) == 0 {
		return
	}
	err := s.inScope(ctx, claim.Scope, func(b *pgx.Batch) {
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
	for _, row := range rows {
		if row.Payload == nil {
			row.Err = fmt.Errorf("the payload was not read: %w", cmp.Or(err, errNotHeld))
		}
	}
}

// looks is how many due rows a claim of so many rows looks at.
func looks(rows int) int { return max(rows, fewestLooks) }

// scanClaim reads the answer of the claim statement: a row that tells how far the walk came, and one for each row claimed.
func scanClaim(rows pgx.Rows, claim *relay.Claim, look *look) error {
	var (
		end, abandoned, passed pgtype.Int8
		token, expired         pgtype.Text
		created                pgtype.Timestamptz
		row                    relay.Row
	)
	ofWalk := []any{
		&look.more, &claim.Seen, &look.ours, &claim.Pushed, &look.end.due, &end, &look.abandoned.due, &abandoned,
		&look.passed.due, &passed, &look.clock, &look.gate, &token, nil, nil, nil, nil, nil, nil, nil, nil,
	}
	ofRow := []any{
		nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil,
		&row.ID, &row.OperationID, &row.Type, &created, &row.Attempts, &expired, &row.Bytes, &row.Payload,
	}
	for rows.Next() {
		into := ofRow
		if rows.RawValues()[0] != nil {
			into = ofWalk
		}
		if err := rows.Scan(into...); err != nil {
			return fmt.Errorf("read claimed rows: %w", err)
		}
		if rows.RawValues()[0] == nil {
			row.CreatedAt, row.Expired = instant(created), expired.String
			claim.Rows = append(claim.Rows, row)
		}
	}
	// A walk begins behind its position, so those of rows that it is to meet are one before.
	look.end.id, look.abandoned.id, look.passed.id = end.Int64, abandoned.Int64-1, passed.Int64-1
	look.seen = claim.Seen
	claim.Busy = look.refused()
	if token.Valid {
		claim.Token = token.String
	}
	return rows.Err()
}
