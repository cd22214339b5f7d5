package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// oldest is the first major version of PostgreSQL that the statements were made for.
const oldest = 13

// role is whom the store works as.
type role struct {
	name              string
	superuser, bypass bool // of row security
}

// server looks at the server and the role.
func (i *inspection) server(ctx context.Context) error {
	var (
		version, database string
		number            int
		standby, readOnly bool
		backend           uint32
		fsync             bool
	)
	err := i.conn.QueryRow(ctx, `
		select current_setting('server_version'), current_setting('server_version_num')::int / 10000,
		       pg_is_in_recovery(), current_setting('transaction_read_only') = 'on',
		       pg_backend_pid(), current_setting('fsync') = 'on', current_database(), current_user, r.rolsuper, r.rolbypassrls
		from pg_roles r where r.rolname = current_user`,
	).Scan(&version, &number, &standby, &readOnly, &backend, &fsync, &database, &i.role.name, &i.role.superuser, &i.role.bypass)
	if err != nil {
		return err
	}
	from := i.conn.PgConn().Conn().RemoteAddr().String()
	if number < oldest {
		i.fail("database", fmt.Sprintf("%s is PostgreSQL %s", from, version), fmt.Sprintf("use PostgreSQL %d or newer", oldest))
		return errBlind
	}
	i.ok("database", fmt.Sprintf("PostgreSQL %s at %s, database %q, as %q", version, from, database, i.role.name))
	i.writable(standby, readOnly)
	i.pooler(backend)
	i.durability(fsync)
	return nil
}

// durability is about commits. Exactly-once relies on them: a claim that a crash makes the database forget is made, and sent, a
// second time.
func (i *inspection) durability(fsync bool) {
	const check = "durability"
	switch {
	case fsync:
		i.ok(check, "what is committed outlives a crash of the server")
	case i.store.durable:
		i.fail(check, forgetful, remember)
	default:
		i.warn(check, forgetful, "set fsync=on")
	}
}

const (
	forgetful = "the server has fsync=off, so it forgets what it has committed when its machine crashes, and events may come twice"
	remember  = "set fsync=on (alter system set fsync = on; select pg_reload_conf()), or RELAY_DELIVERY=at-least-once"
)

func (i *inspection) writable(standby, readOnly bool) {
	const check = "writable"
	switch {
	case standby:
		i.fail(check, "the server is a standby, which only reads", "name the primary in RELAY_DATABASE_URL, or all hosts")
	case readOnly:
		i.fail(check, fmt.Sprintf("transactions of %q only read", i.role.name),
			"turn default_transaction_read_only off for the role and the database")
	default:
		i.ok(check, "the server accepts writes")
	}
}

// pooler compares the server's process with the one that was announced at the start of
// the connection. A pooler announces a number of its own.
func (i *inspection) pooler(backend uint32) {
	const check = "pooler"
	between := i.conn.PgConn().PID() != backend
	named := i.conn.Config().DefaultQueryExecMode == pgx.QueryExecModeCacheStatement
	switch {
	case between && named:
		i.warn(check, "a connection pooler stands in front of the server",
			"set RELAY_DATABASE_POOLED=true if it pools transactions; without it statements then fail at random")
	case between:
		i.ok(check, "a connection pooler stands in front of the server, and no prepared statement is left behind")
	default:
		i.ok(check, "the connection is direct")
	}
}
