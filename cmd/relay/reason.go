package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"outboxrelay/store"
)

const lacking = "the database lacks what the relay needs; it is looked at again"

// explain finds out what the database lacks while it refuses statements that it took before: a right was revoked, or a table
// changed. PostgreSQL's own words name the table, and seldom what to do.
func (p *process) explain(ctx context.Context) {
	was := p.schemaError()
	var now error
	if refused(p.relay.Health().Database) {
		now = failure(p.store.Inspect(ctx, p.settings.Namespace, p.currentScopes()))
	}
	if ctx.Err() != nil {
		return // the look was cut short, so what it says is no trouble
	}
	p.setSchema(now)
	if now != nil && (was == nil || was.Error() != now.Error()) {
		p.log.Error().Err(now).Msg(lacking)
	}
}

// told is an error as people are told of it: if it is about a connection to the database, why there is none and what to do.
func told(err error, passwordFrom string) error {
	if seen, do, ok := store.Unreachable(err, passwordFrom); ok {
		return fmt.Errorf("%s -> %s", seen, do)
	}
	return err
}

// refused is true for what PostgreSQL calls a syntax error or access rule violation.
func refused(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && len(answer.Code) == 5 && answer.Code[:2] == "42"
}
