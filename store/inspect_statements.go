package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"outboxrelay/envelope"
	"outboxrelay/migrations"
)

// statements has the server plan each of the store's statements for a scope, which
// checks names, types and rights as their execution would, and executes nothing.
// Whatever was not foreseen shows here in the server's own words.
func (i *inspection) statements(ctx context.Context, namespace string, scope envelope.Scope) {
	const check = "statements"
	s := i.store
	err := s.inScope(ctx, scope, func(b *pgx.Batch) {
		plan := func(name, text string, args ...any) {
			b.Queue("explain "+text, args...).Query(func(rows pgx.Rows) error {
				rows.Close()
				if err := rows.Err(); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				return nil
			})
		}
		ids, token := []int64{}, "check"
		plan("gate", s.sql.gate, s.gate(namespace, scope))
		plan("claim", s.claimText(claimKey{rows: 1, indexed: i.index == migrations.Ready}), scope.Stored(), namespace, token,
			seconds(time.Second), seconds(recheck), beginning.due, beginning.id, int64(1))
		plan("payload", s.sql.payload, scope.Stored(), ids, token)
		plan("mark", s.sql.mark, ids, token)
		plan("late mark", s.sql.markLate, ids, []uuid.UUID{}, []time.Time{})
		plan("release", s.sql.release, ids, token, []*float64{}, []*string{}, []int32{})
		plan("renewal", s.sql.renew, ids, token, seconds(time.Second))
		plan("clear", s.sql.clear, ids, token)
		plan("status", s.sql.status, scope.Stored(), namespace, CountCap)
	})
	if err != nil {
		i.fail(check, fmt.Sprintf("the database refuses a statement of the relay: %v", err),
			"mend what it says; if it makes no sense to you, report it as a bug with this text")
		return
	}
	i.ok(check, "the database takes the relay's statements")
}
