package inbox_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"outboxrelay/envelope"
	"outboxrelay/inbox"
	"outboxrelay/internal/pgtest"
)

const consumer = "billing"

// setup is a consumer's database: the inbox, and the numbers of the events that it has handled.
var setup = pgtest.Setup{Name: "inbox", Apply: func(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if err := inbox.Create(ctx, conn); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "create table handled (id text, outcome text)")
	return err
}}

func tenant(t testing.TB, id string) envelope.Scope {
	t.Helper()
	scope, err := envelope.Tenant(id)
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

// event is one as it comes out of a topic.
func event(t testing.TB, scope envelope.Scope, operation uuid.UUID, version int64) envelope.Event {
	t.Helper()
	e, err := envelope.New("orders", scope, operation, "aksara.operation.transition", time.Now(),
		fmt.Appendf(nil, `{"state_version": %d}`, version))
	if err == nil {
		e, err = envelope.Parse(e.Record())
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// handle takes an event and does something about it, as a consumer does.
func handle(ctx context.Context, tx pgx.Tx, consumer string, e envelope.Event) (inbox.Outcome, error) {
	outcome, err := inbox.Take(ctx, tx, consumer, e)
	if err != nil || outcome == inbox.Duplicate {
		return outcome, err
	}
	_, err = tx.Exec(ctx, "insert into handled values ($1, $2)", e.Source()+" "+e.ID(), outcome.String())
	return outcome, err
}

type beginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// once is a transaction that handles one event.
func once(ctx context.Context, db beginner, options pgx.TxOptions, e envelope.Event) (outcome inbox.Outcome, err error) {
	err = pgx.BeginTxFunc(ctx, db, options, func(tx pgx.Tx) error {
		outcome, err = handle(ctx, tx, consumer, e)
		return err
	})
	return outcome, err
}

// expect handles one event and fails unless that comes out.
func expect(t *testing.T, db beginner, e envelope.Event, want inbox.Outcome) {
	t.Helper()
	got, err := once(t.Context(), db, pgx.TxOptions{}, e)
	if err != nil || got != want {
		t.Errorf("event %s of %s: %s, %v, want %s", e.ID(), e.Scope, got, err, want)
	}
}

func begin(t *testing.T, db beginner, options pgx.TxOptions) pgx.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // it may be over already
	return tx
}

func count(t *testing.T, db *pgtest.DB, query string, args ...any) (n int) {
	t.Helper()
	if err := db.Conn(t).QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
