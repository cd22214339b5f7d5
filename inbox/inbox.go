package inbox

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"outboxrelay/envelope"
)

// Schema is the SQL that makes the inbox's table, for those who keep their own migrations. It names no schema: the table
// goes to the first one in the search path, and is looked for along that.
//
//go:embed sql/create.sql
var Schema string

var (
	//go:embed sql/take.sql
	takeSQL string
	//go:embed sql/prune.sql
	pruneSQL string
)

// Outcome is what [Take] found.
type Outcome int

const (
	// Fresh is an event that was not taken before, newer than all of its operation that were.
	Fresh Outcome = iota + 1
	// Stale is an event that was not taken before, though a newer one of its operation was. Who counts or records events
	// handles it like a fresh one; who keeps an operation's latest state must not set it back by this.
	Stale
	// Duplicate is an event that was taken before. There is nothing to do but to commit its offset.
	Duplicate
)

func (o Outcome) String() string {
	switch o {
	case Fresh:
		return "fresh"
	case Stale:
		return "stale"
	case Duplicate:
		return "duplicate"
	default:
		return fmt.Sprintf("Outcome(%d)", int(o))
	}
}

// Take notes in tx that consumer has taken the event, and tells whether that is for the first time. It counts when tx is
// committed, and only then. The consumer's name has 1 to 255 bytes of UTF-8.
//
// It waits for other transactions that have taken events of the same operation to end, as long as ctx allows. After an
// error tx can only be rolled back; the error holds the server's *pgconn.PgError, by whose code 40001 or 40P01 the
// transaction can be begun again.
func Take(ctx context.Context, tx pgx.Tx, consumer string, event envelope.Event) (Outcome, error) {
	if !event.Scope.Valid() || event.StateVersion < 1 {
		return 0, errors.New("inbox: the event is none that envelope.Parse or envelope.New has made")
	}
	var newest int64
	err := tx.QueryRow(ctx, takeSQL, consumer, []byte(event.Source()), event.OperationID, event.StateVersion).Scan(&newest)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Duplicate, nil
	case err != nil:
		return 0, fmt.Errorf("inbox: take event %s: %w", event.ID(), err)
	case newest > event.StateVersion:
		return Stale, nil
	default:
		return Fresh, nil
	}
}

// Execer is a connection, a pool or a transaction.
type Execer interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
}

// Create makes the inbox's table where there is none. Several processes may call it at once, and at each start. The role
// needs CREATE on the schema for it; to take and prune it needs SELECT, INSERT, UPDATE and DELETE on the table relay_inbox.
func Create(ctx context.Context, db Execer) error {
	if _, err := db.Exec(ctx, Schema); err != nil {
		return fmt.Errorf("inbox: create the table: %w", err)
	}
	return nil
}

// Prune forgets the operations of which consumer has taken nothing for longer than keep, by the database's clock, and
// returns their number. An event of theirs that comes after all would be Fresh again; the package's documentation says how
// long to keep. It may run beside Take.
func Prune(ctx context.Context, db Execer, consumer string, keep time.Duration) (operations int64, err error) {
	if keep < 0 {
		return 0, fmt.Errorf("inbox: prune: keep is %s, and can't be negative", keep)
	}
	tag, err := db.Exec(ctx, pruneSQL, consumer, keep.Seconds())
	if err != nil {
		return 0, fmt.Errorf("inbox: prune: %w", err)
	}
	return tag.RowsAffected(), nil
}
