package main

import (
	"context"
	_ "embed" // watch.sql
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

//go:embed watch.sql
var watchSQL string

const unwatchSQL = `drop schema demo cascade`

// change is what one statement did to rows of the outbox.
type change struct {
	Kind   string
	Tenant string
	At     time.Time
	Rows   []changedRow
}

// changedRow is a row as the statement left it. Which fields are set depends on the kind of change.
type changedRow struct {
	ID        int64
	Operation uuid.UUID
	Version   int64
	State     string
	Attempts  int
	Error     string
	Due       time.Time // next_attempt_at
	Until     time.Time // claim_expires_at
}

// watchTable installs the triggers of watch.sql and gives their messages to heard, one at a time in the order of the
// commits, until ctx ends. lost is told if the connection breaks before.
func watchTable(ctx context.Context, url string, heard func(change), lost func(error)) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, watchSQL+"; listen demo"); err != nil {
		return fmt.Errorf("watch the outbox: %w", err)
	}
	go func() {
		defer conn.Close(context.WithoutCancel(ctx))
		if err := listen(ctx, conn, heard); ctx.Err() == nil {
			lost(fmt.Errorf("watch the outbox: %w", err))
		}
	}()
	return nil
}

func listen(ctx context.Context, conn *pgx.Conn, heard func(change)) error {
	for {
		message, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		var c change
		if err := json.Unmarshal([]byte(message.Payload), &c); err != nil {
			return err
		}
		heard(c)
	}
}
