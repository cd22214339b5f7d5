package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

// Ended is what became of a parked event that was retried or discarded.
type Ended struct {
	ID     int64
	Behind int // events behind it that are due now as well; those in flight don't count

	operation uuid.UUID
}

// Retry makes parked events of one scope and namespace due now, with all that waits behind
// them; attempts and reason stay. It answers with those that were parked, in ascending
// order, and leaves all others alone. It works by the page: after an error the answer
// holds what was done before. Calls may be repeated, and made at once.
func (s *Store) Retry(ctx context.Context, namespace string, scope envelope.Scope, ids []int64) ([]Ended, error) {
	done, err := s.end(ctx, scope, s.sql.parkedRetry, ids, namespace)
	if err != nil {
		err = fmt.Errorf("retry parked events of %s: %w", scope, err)
	}
	return done, err
}

// RetryAll retries all parked events of one scope and namespace, a page at a time, and
// tells how many those were, and how many behind them are due as well.
func (s *Store) RetryAll(ctx context.Context, namespace string, scope envelope.Scope) (events, behind int, err error) {
	for page, err := range s.parkedPages(ctx, namespace, scope) {
		if err != nil {
			return events, behind, err
		}
		ids := make([]int64, len(page))
		for i := range page {
			ids[i] = page[i].row
		}
		done, err := s.Retry(ctx, namespace, scope, ids)
		for _, e := range done {
			events, behind = events+1, behind+e.Behind
		}
		if err != nil {
			return events, behind, err
		}
	}
	return events, behind, nil
}

// Discard gives parked events of one scope and namespace up for a reason: they count as
// exported, with the reason as their error, and what waits behind them is due now.
// Otherwise it is as [Store.Retry].
func (s *Store) Discard(ctx context.Context, namespace string, scope envelope.Scope, ids []int64, reason string) ([]Ended, error) {
	done, err := s.end(ctx, scope, s.sql.parkedDiscard, ids, namespace, relay.StoredText("discarded: "+reason))
	if err != nil {
		err = fmt.Errorf("discard parked events of %s: %w", scope, err)
	}
	return done, err
}

// end runs a statement on parked rows, page by page; its $2 is the namespace and its $4, if
// it has one, follows.
func (s *Store) end(ctx context.Context, scope envelope.Scope, statement variants, ids []int64, namespace string, more ...any) (done []Ended, err error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	for page := range slices.Chunk(ids, parkedPage) {
		ended, err := s.endPage(ctx, scope, statement, append([]any{namespace, page}, more...)...)
		if err != nil {
			return done, err
		}
		done = append(done, ended...)
		if err := s.endBehind(ctx, scope, ended); err != nil {
			return done, err
		}
	}
	return done, nil
}

// endBehind is a second look behind rows whose parking has ended: the statement tells why.
func (s *Store) endBehind(ctx context.Context, scope envelope.Scope, ended []Ended) error {
	if len(ended) == 0 {
		return nil
	}
	s.walks.forget(scope)
	ids, operations := make([]int64, len(ended)), make([]uuid.UUID, len(ended))
	for i, e := range ended {
		ids[i], operations[i] = e.ID, e.operation
	}
	_, err := s.endPage(ctx, scope, s.sql.parkedBehind, ids, operations)
	return err
}

func (s *Store) endPage(ctx context.Context, scope envelope.Scope, statement variants, args ...any) (ended []Ended, err error) {
	indexed, err := s.indexed(ctx)
	if err != nil {
		return nil, err
	}
	args = append([]any{scope.Stored()}, args...)
	err = again(ctx, func() error {
		return s.inScope(ctx, scope, func(b *pgx.Batch) {
			b.Queue(statement.text(indexed), args...).Query(func(rows pgx.Rows) (err error) {
				ended, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Ended, err error) {
					return e, row.Scan(&e.ID, &e.operation, &e.Behind)
				})
				return err
			})
		})
	})
	if err != nil {
		s.lookAgain()
		return nil, err
	}
	return ended, nil
}

// again does a transaction anew that the server ended for the sake of others.
func again(ctx context.Context, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		if err == nil || !retriable(err) || try == settleTries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Duration(float64(settlePause) * (0.5 + rand.Float64()))):
		}
	}
}
