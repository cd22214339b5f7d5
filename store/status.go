package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"outboxrelay/envelope"
)

// CountCap is the highest number that a count of [Status] tells apart; a count that
// reaches it means "this many or more".
const CountCap = 10_000

// Status is how the rows of one scope and namespace stand, each count up to [CountCap].
type Status struct {
	Due, InFlight, Delayed, Parked int
	// OldestDue is for how long the row that is due longest has been so; 0 if none is.
	OldestDue time.Duration
}

// Waiting tells, in the same order, which of some scopes have rows that are not exported,
// in one round trip. The others have nothing to count.
func (s *Store) Waiting(ctx context.Context, scopes []envelope.Scope) ([]bool, error) {
	if len(scopes) == 0 {
		return nil, nil
	}
	stored := make([]string, len(scopes))
	for i, scope := range scopes {
		stored[i] = scope.Stored()
	}
	return lookAt(ctx, s, scopes, s.sql.waiting, pgx.RowTo[bool], stored)
}

// Status counts the rows of one scope. It reads at most a few times CountCap entries
// of the pending index, however many rows there are.
func (s *Store) Status(ctx context.Context, namespace string, scope envelope.Scope) (Status, error) {
	var st Status
	var oldest float64
	err := s.inScope(ctx, scope, func(b *pgx.Batch) {
		b.Queue(s.sql.status, scope.Stored(), namespace, CountCap).QueryRow(func(row pgx.Row) error {
			return row.Scan(&st.Due, &st.InFlight, &st.Delayed, &st.Parked, &oldest)
		})
	})
	if err != nil {
		return Status{}, fmt.Errorf("count events of %s: %w", scope, err)
	}
	st.OldestDue = duration(oldest)
	return st, nil
}
