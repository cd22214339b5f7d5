package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"outboxrelay/envelope"
)

// errRolledBack: the server answered COMMIT with ROLLBACK.
var errRolledBack = errors.New("the database rolled the transaction back instead of committing it")

// scoped is what a transaction does in one scope. queue adds the statements; their callbacks run as the
// answers are read.
type scoped struct {
	scope envelope.Scope
	limit time.Duration // for each statement; 0 for the usual one
	queue func(*pgx.Batch)
}

// inScope runs statements in one transaction of one scope, in one round trip.
func (s *Store) inScope(ctx context.Context, scope envelope.Scope, queue func(*pgx.Batch)) error {
	return s.inScopes(ctx, scoped{scope: scope, queue: queue})
}

// inScopes runs statements of several scopes in one transaction and one round trip, those of each
// scope in that scope. Read committed is asked for by name, because SKIP LOCKED fails above it and a
// role may default to more.
func (s *Store) inScopes(ctx context.Context, work ...scoped) error {
	ctx, cancel := s.limit(ctx)
	defer cancel()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return explain(ctx, err)
	}
	defer conn.Release()

	b := &pgx.Batch{}
	b.Queue("begin isolation level read committed")
	for _, w := range work {
		limit := cmp.Or(w.limit, s.timings.server)
		b.Queue(s.sql.frame, w.scope.Stored(), milliseconds(limit), milliseconds(s.timings.lock))
		w.queue(b)
	}
	b.Queue("commit").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return errRolledBack
		}
		return nil
	})
	if err = conn.SendBatch(ctx, b).Close(); err != nil {
		s.mend(conn, err)
		return explain(ctx, err)
	}
	return nil
}

// limit bounds one call, with a cause that says so.
func (s *Store) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.timings.call, fmt.Errorf("no answer from the database in %s", s.timings.call))
}

// mend makes a connection usable again after an error, or gives it up. The context of
// the call may be over, so it has one of its own.
func (s *Store) mend(conn *pgxpool.Conn, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), rollbackLimit)
	defer cancel()
	if unusable(err) {
		_ = conn.Conn().Close(ctx) // whatever it says, the pool drops a closed connection
		return
	}
	if !conn.Conn().IsClosed() && conn.Conn().PgConn().TxStatus() != 'I' {
		_, _ = conn.Exec(ctx, "rollback") // if it fails, the pool drops the connection
	}
}

// unusable is true for errors after which a server does not take writes on this
// connection any more, even though it stays open: it was demoted or is going down.
func unusable(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	switch pg.Code {
	case "25006", "57P01", "57P02", "57P03":
		return true
	}
	return strings.HasPrefix(pg.Code, "08")
}

// explain puts the cause of an ended context before the driver's words.
func explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}

// retriable is true for transactions that the server ended for the sake of others.
func retriable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40P01" || pg.Code == "40001")
}

// refused is true for what the server says of a statement or its rows, and not of itself: a
// trigger's exception, a right, a constraint, or a lock that took too long to come.
func refused(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || unusable(err) || retriable(err) {
		return false
	}
	switch pg.Code[:2] {
	case "53", "57", "58", "XX", "25": // resources, an operator, the system; but a cancelled statement is one
		return pg.Code == "57014"
	}
	return true
}

// milliseconds is a duration as the server's settings take it.
func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// seconds is a duration as SQL multiplies it with an interval of one second.
func seconds(d time.Duration) float64 { return d.Seconds() }

// duration is a number of seconds, within what a time.Duration holds.
func duration(seconds float64) time.Duration {
	const most = float64(1<<62) / float64(time.Second)
	return time.Duration(max(min(seconds, most), -most) * float64(time.Second))
}

var infinity = math.Inf(1)
