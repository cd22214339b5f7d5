package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"outboxrelay/envelope"
	"outboxrelay/migrations"
	"outboxrelay/relay"
)

// inspectTimeout bounds all of an inspection but the connection to a server.
const inspectTimeout = 10 * time.Second

// Inspect tells whether the database holds what the relay needs, one finding for each
// thing looked at. It changes nothing and locks nothing. After a finding without which
// nothing else can be seen (no connection, no schema, no table) it ends. With at least
// one scope the store's own statements are tried as well, without being executed.
//
// It says nothing of how many events wait; that is [Store.Backlog].
func (s *Store) Inspect(ctx context.Context, namespace string, scopes []envelope.Scope) []relay.Finding {
	i := &inspection{store: s, schema: s.schema}
	i.catalogue(ctx)
	if len(scopes) > 0 && !i.failed() {
		i.statements(ctx, namespace, scopes[0])
	}
	return i.findings
}

// inspection is one look at a database: what is known so far, and what was found.
type inspection struct {
	store  *Store
	conn   *pgx.Conn
	schema string
	findings

	role    role
	index   migrations.State
	tables  map[string]table // those that are there
	lacking bool             // a privilege
}

// errBlind ends an inspection: its last finding hides everything else.
var errBlind = errors.New("nothing else can be seen")

// catalogue looks at what the system catalogues tell. They are readable by any role.
func (i *inspection) catalogue(ctx context.Context) {
	conn, err := i.store.pool.Acquire(ctx)
	if err != nil {
		i.findings = append(i.findings, i.store.unreachable(ctx, err))
		return
	}
	defer conn.Release()
	i.conn = conn.Conn()
	ctx, cancel := context.WithTimeoutCause(ctx, inspectTimeout, fmt.Errorf("no answer from the database in %s", inspectTimeout))
	defer cancel()
	for _, look := range []func(context.Context) error{
		i.server, i.indexState, i.lookTables, i.lookColumns, i.privileges, i.rowSecurity, i.policies, i.indexes,
	} {
		err := look(ctx)
		if errors.Is(err, errBlind) {
			return
		}
		if err != nil {
			i.store.mend(conn, err)
			i.fail("database", fmt.Sprintf("the catalogue can't be read: %v", explain(ctx, err)), "look at the server's log")
			return
		}
	}
}

// findings is what was found so far.
type findings []relay.Finding

func (f *findings) ok(check, seen string) {
	*f = append(*f, relay.Finding{Check: check, Level: relay.OK, Seen: seen})
}

func (f *findings) warn(check, seen, do string) {
	*f = append(*f, relay.Finding{Check: check, Level: relay.Warn, Seen: seen, Do: do})
}

func (f *findings) fail(check, seen, do string) {
	*f = append(*f, relay.Finding{Check: check, Level: relay.Fail, Seen: seen, Do: do})
}

// okUnlessSaid is ok if nothing worse was said since the findings were that many.
func (f *findings) okUnlessSaid(since int, check, seen string) {
	if len(*f) == since {
		f.ok(check, seen)
	}
}

func (f *findings) failed() bool {
	for _, each := range *f {
		if each.Level == relay.Fail {
			return true
		}
	}
	return false
}

// collect reads all rows of a query about the schema, which is its $1.
func collect[T any](ctx context.Context, i *inspection, row pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := i.conn.Query(ctx, sql, append([]any{i.schema}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, row)
}
