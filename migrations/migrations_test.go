package migrations

import (
	"maps"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// names of hostile or merely unusual schemas
func schemas() []string {
	return []string{"public", "Orders", `od"d`, "two words", `:"role"`, "select", "x'; drop table t; --", strings.Repeat("ü", 31)}
}

func TestStandaloneFromEmptyThenAgain(t *testing.T) {
	t.Parallel()
	for _, schema := range schemas() {
		t.Run(schema, func(t *testing.T) {
			t.Parallel()
			db := emptyDatabase(t)
			conn := db.Conn(t)
			role := newRole(t, db)
			options := Options{Schema: schema, Standalone: true, GrantTo: role.name}

			first := mustRun(t, conn, options)
			made := Created
			if schema == "public" {
				made = AlreadyThere
			}
			want := map[string]Outcome{
				"schema " + quote(schema):                                                     made,
				"table aksara_operations":                                                     Created,
				"table aksara_operation_transitions":                                          Created,
				"table aksara_operation_outbox":                                               Created,
				"index relay_outbox_operation":                                                Created,
				"storage parameters of aksara_operation_outbox":                               Set,
				"USAGE on the schema for role " + quote(role.name):                            Granted,
				"SELECT on aksara_operation_outbox for role " + quote(role.name):              Granted,
				"UPDATE on six columns of " + outbox + " for role " + quote(role.name):        Granted,
				"SELECT on two columns of " + operations + " for role " + quote(role.name):    Granted,
				"SELECT on three columns of " + transitions + " for role " + quote(role.name): Granted,
			}
			if schema == "public" { // everybody may use it
				want["USAGE on the schema for role "+quote(role.name)] = AlreadyThere
			}
			if !maps.Equal(first, want) {
				t.Errorf("first run: got  %v\nwant %v", first, want)
			}
			wantState(t, conn, schema, Ready)

			before := catalogue(t, conn)
			for name, outcome := range mustRun(t, conn, options) {
				if outcome != AlreadyThere {
					t.Errorf("second run: %s: %s", name, outcome)
				}
			}
			if after := catalogue(t, conn); after != before {
				t.Errorf("the second run changed the catalogue:\n%s\n%s", before, after)
			}
		})
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	t.Parallel()
	db := emptyDatabase(t)
	conn := db.Conn(t)
	options := Options{Schema: "app", Standalone: true, GrantTo: newRole(t, db).name, DryRun: true}
	would := func(name string) Outcome {
		switch {
		case strings.HasPrefix(name, "storage"):
			return WouldSet
		case strings.Contains(name, "for role"):
			return WouldGrant
		default:
			return WouldCreate
		}
	}

	before := catalogue(t, conn)
	m, r := impatient(conn, options)
	if err := m.run(t.Context(), (*migration).everything); err != nil {
		t.Fatal(err)
	}
	if len(r.steps) != 11 {
		t.Errorf("%d steps, want 11", len(r.steps))
	}
	for _, s := range r.steps {
		if s.Outcome != would(s.Name) || s.SQL == "" || strings.Contains(s.SQL, `:"`) {
			t.Errorf("%s: %s: %s", s.Name, s.Outcome, s.SQL)
		}
	}
	if after := catalogue(t, conn); after != before {
		t.Errorf("the catalogue has changed:\n%s\n%s", before, after)
	}
	if locks := advisoryLocks(t, conn); locks != 0 {
		t.Errorf("%d advisory locks left", locks)
	}
}

// The statements that a dry run shows, run by hand, are all that is to do.
func TestDryRunShowsWhatIsRun(t *testing.T) {
	t.Parallel()
	db := emptyDatabase(t)
	conn := db.Conn(t)
	options := Options{Schema: "by hand", Standalone: true, GrantTo: newRole(t, db).name, DryRun: true}
	m, r := impatient(conn, options)
	if err := m.run(t.Context(), (*migration).everything); err != nil {
		t.Fatal(err)
	}
	for _, s := range r.steps {
		exec(t, conn, s.SQL)
	}
	for name, outcome := range mustRun(t, conn, options) {
		if outcome != AlreadyThere {
			t.Errorf("%s: %s", name, outcome)
		}
	}
}

func TestRunLeavesTheSessionAsItWas(t *testing.T) {
	t.Parallel()
	conn := emptyDatabase(t).Conn(t)
	settings := func() string {
		return read[string](t, conn, `select string_agg(name || '=' || setting, ' ' order by name) from pg_settings
			where name in ('lock_timeout', 'statement_timeout', 'search_path', 'default_transaction_isolation')`)
	}
	before := settings()
	mustRun(t, conn, Options{Standalone: true})
	if after := settings(); after != before {
		t.Errorf("settings %s, want %s", after, before)
	}
	if locks := advisoryLocks(t, conn); locks != 0 {
		t.Errorf("%d advisory locks left", locks)
	}
}

func TestOptionDefaults(t *testing.T) {
	t.Parallel()
	conn := emptyDatabase(t).Conn(t)
	if err := Run(t.Context(), conn, Options{Standalone: true}); err != nil {
		t.Fatal(err)
	}
	wantState(t, conn, "public", Ready)
}

func TestRefusesALongSchemaName(t *testing.T) {
	t.Parallel()
	conn := emptyDatabase(t).Conn(t)
	err := Run(t.Context(), conn, Options{Standalone: true, Schema: strings.Repeat("n", 64)})
	mustContain(t, err, "longer than 63 bytes")
}

// advisoryLocks counts those of the connected database; other tests have theirs in the same server.
func advisoryLocks(t *testing.T, conn *pgx.Conn) int {
	t.Helper()
	return read[int](t, conn, `select count(*) from pg_locks l join pg_database d on d.oid = l.database
		where l.locktype = 'advisory' and d.datname = current_database()`)
}

// catalogue tells everything in the database that a run might change.
func catalogue(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	return read[string](t, conn, `
		select string_agg(line, e'\n' order by line) from (
			select format('schema %s %s', nspname, nspacl) from pg_namespace where nspname !~ '^pg_(toast|temp)'
			union all
			select format('relation %s.%s %s %s %s %s', n.nspname, c.relname, c.oid, c.relfilenode, c.reloptions, c.relacl)
			from pg_class c join pg_namespace n on n.oid = c.relnamespace
			where n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
			union all
			select format('column %s.%s %s', attrelid, attname, attacl) from pg_attribute where attacl is not null
		) t(line)`)
}
