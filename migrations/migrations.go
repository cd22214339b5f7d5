// Package migrations prepares a database for the relay: its supporting index and storage parameters on Aksara's outbox,
// the privileges of its role and, where no Aksara is, compatible tables.
//
// There is no table of versions. Each object is judged by the catalogue each time, which is also what the relay itself
// goes by at its start: what is as it should be is left alone, what is missing or broken is made. So a run that was cut
// short is mended by the next one, and running twice changes nothing.
//
// The application goes on working meanwhile. The index is built CONCURRENTLY. Everything else is a matter of
// milliseconds, and gives up waiting for its lock after one second to try again later: a statement that stands in the
// queue for a strong lock holds up all statements behind it.
//
// The statements are the files in sql. They can also be run by hand: psql -v schema=public -v role=relay -f FILE.
package migrations

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Options says what [Run] is to prepare.
type Options struct {
	// Schema is where Aksara's tables are, or are to be; any name, unquoted. Default: public.
	Schema string
	// Standalone first creates compatible tables (and the schema) where they are missing. Tables that are there, whoever
	// made them, must be of the shape that Aksara gives them.
	Standalone bool
	// GrantTo is a role that gets the smallest privileges that a relay needs, as far as it lacks them; unquoted. Default:
	// no role.
	GrantTo string
	// DryRun tells what would be done and changes nothing. It does not wait for other runs.
	DryRun bool
	// Report, when set, is told each step as it ends, and the progress of those that take long. It is never called
	// concurrently, and never after Run has returned.
	Report func(Step)
}

// Run prepares the database that conn is connected to.
//
// It needs a session of its own (no transaction pooler) and the rights of the tables' owner for whatever is missing;
// conn must not be in a transaction. Runs at the same time, from anywhere, take turns: all but one wait until ctx ends.
// Waiting for locks of other sessions is reported, and given up after five minutes for all but the index, which waits
// until ctx ends, since its waiting harms nobody. When ctx ends or the connection breaks, conn is closed and the next
// run completes the work.
func Run(ctx context.Context, conn *pgx.Conn, options Options) error {
	return newMigration(conn, options).run(ctx, (*migration).everything)
}

// The timings of a run. Tests shorten them.
type timings struct {
	lock     time.Duration // how long one attempt of a statement waits for its table lock
	retry    time.Duration // between two attempts, and between two looks at another run; about, see pause
	patience time.Duration // until waiting for a table lock is given up
	progress time.Duration // between two looks at a long build
	answer   time.Duration // until a statement that only reads the catalogue has failed
}

func defaultTimings() timings {
	return timings{
		lock:     time.Second,
		retry:    500 * time.Millisecond,
		patience: 5 * time.Minute,
		progress: 5 * time.Second,
		answer:   30 * time.Second,
	}
}

type migration struct {
	Options
	timings
	conn *pgx.Conn
	ddl  *ddl
}

func newMigration(conn *pgx.Conn, options Options) *migration {
	if options.Schema == "" {
		options.Schema = "public"
	}
	if options.Report == nil {
		options.Report = func(Step) {}
	}
	return &migration{
		Options: options,
		timings: defaultTimings(),
		conn:    conn,
		ddl:     newDDL(options.Schema, options.GrantTo),
	}
}

// run does the given work alone: what is judged before the lock may be out of date behind it.
func (m *migration) run(ctx context.Context, work func(*migration, context.Context) error) error {
	err := m.checkServer(ctx)
	if err == nil && m.DryRun {
		err = work(m, ctx)
	} else if err == nil {
		err = m.alone(ctx, func() error { return work(m, ctx) })
	}
	if m.conn.IsClosed() {
		awaitCleanup(m.conn)
	}
	return err
}

// awaitCleanup waits until the server was asked to cancel what a closed connection was still doing; a program that ends
// before would leave a build running.
func awaitCleanup(conn *pgx.Conn) {
	const limit = 5 * time.Second
	select {
	case <-conn.PgConn().CleanupDone():
	case <-time.After(limit):
	}
}

// everything refuses whatever can't be done before it changes anything.
func (m *migration) everything(ctx context.Context) error {
	role, err := m.findRole(ctx)
	if err != nil {
		return err
	}
	if err := m.checkTables(ctx); err != nil {
		return err
	}
	if m.Standalone {
		if err := m.ensureTables(ctx); err != nil {
			return err
		}
	}
	if err := m.ensureIndex(ctx); err != nil {
		return err
	}
	if err := m.ensureStorage(ctx); err != nil {
		return err
	}
	return m.ensureGrants(ctx, role)
}

// checkServer refuses what the statements were not made for.
func (m *migration) checkServer(ctx context.Context) error {
	const oldest = 13
	const longestName = 63 // bytes; the server would cut a longer one without a word

	if len(m.Schema) > longestName {
		return fmt.Errorf("schema name %q is longer than %d bytes", m.Schema, longestName)
	}
	var version int
	err := m.look(ctx, "reading the server's version", func(ctx context.Context) error {
		return m.conn.QueryRow(ctx, `select current_setting('server_version_num')::int / 10000`).Scan(&version)
	})
	if err == nil && version < oldest {
		return fmt.Errorf("this is PostgreSQL %d: version %d or newer is needed", version, oldest)
	}
	return err
}
