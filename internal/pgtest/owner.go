package pgtest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// mark begins the name of everything that this package makes on a server.
const mark = "relay_test_"

// owner is a process that makes databases on a server. It holds an advisory lock on a number made from its prefix for as
// long as it lives, so that others can tell what a killed process left behind. The lock is one of database postgres.
type owner struct {
	prefix string // mark, an id, and an underscore
	lock   *pgx.Conn
}

// takeOwner makes an owner, and removes what owners that are gone have left on the server.
func takeOwner(url string) (*owner, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("connect to the tests' server: %w", err)
	}
	o := &owner{prefix: mark + password()[:8] + "_", lock: conn}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", lockNumber(o.prefix)); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return o, sweep(ctx, conn)
}

// sweep drops databases, and then roles, whose owner is gone.
func sweep(ctx context.Context, conn *pgx.Conn) error {
	databases, err := names(ctx, conn, "SELECT datname FROM pg_database WHERE starts_with(datname, $1)")
	if err != nil {
		return err
	}
	roles, err := names(ctx, conn, "SELECT rolname FROM pg_roles WHERE strpos(rolname, $1) > 0")
	if err != nil {
		return err
	}
	for _, name := range databases {
		err = errors.Join(err, dropOrphan(ctx, conn, name, "DROP DATABASE IF EXISTS "+quote(name)+" WITH (FORCE)"))
	}
	for _, name := range roles {
		err = errors.Join(err, dropOrphan(ctx, conn, name, "DROP ROLE IF EXISTS "+quote(name)))
	}
	return err
}

func names(ctx context.Context, conn *pgx.Conn, sql string) ([]string, error) {
	rows, err := conn.Query(ctx, sql, mark)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// dropOrphan runs statement if nobody holds the lock of name's owner.
func dropOrphan(ctx context.Context, conn *pgx.Conn, name, statement string) error {
	number := lockNumber(prefixOf(name))
	var gone bool
	if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", number).Scan(&gone); err != nil || !gone {
		return err
	}
	_, err := conn.Exec(ctx, statement)
	_, errUnlock := conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", number)
	return errors.Join(err, errUnlock)
}

// prefixOf returns the owner's prefix in a name, which a role has after a prefix of its own. A test may add to its database's
// name to name another one beside it, so what comes after the owner's id tells nothing.
func prefixOf(name string) string {
	id := strings.Index(name, mark) + len(mark)
	if end := strings.IndexByte(name[id:], '_'); end >= 0 {
		return name[id-len(mark) : id+end+1]
	}
	return name[id-len(mark):]
}

func lockNumber(prefix string) int64 {
	hash := fnv.New64a()
	hash.Write([]byte(prefix))
	return int64(hash.Sum64())
}
