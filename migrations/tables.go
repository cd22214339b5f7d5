package migrations

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

const (
	operations  = "aksara_operations"
	transitions = "aksara_operation_transitions"
	outbox      = "aksara_operation_outbox"
)

// shape is a table and the columns, with their types, that a relay and its users rely on. Others may be there as well:
// a later Aksara may add some.
type shape struct {
	table   string
	columns []column
}

type column struct{ name, kind string }

// shapes returns the tables in the order of their foreign keys.
func shapes() []shape {
	return []shape{
		{operations, []column{
			{"id", "uuid"},
			{"application_namespace", "character varying"},
			{"tenant_scope", "text"},
			{"state_version", "bigint"},
		}},
		{transitions, []column{
			{"id", "bigint"},
			{"operation_id", "uuid"},
			{"tenant_scope", "text"},
			{"state_version", "bigint"},
		}},
		{outbox, []column{
			{"id", "bigint"},
			{"operation_id", "uuid"},
			{"tenant_scope", "text"},
			{"transition_id", "bigint"},
			{"topic", "character varying"},
			{"payload", "jsonb"},
			{"export_attempts", "integer"},
			{"next_attempt_at", "timestamp with time zone"},
			{"exported_at", "timestamp with time zone"},
			{"claimed_by", "character varying"},
			{"claim_expires_at", "timestamp with time zone"},
			{"last_error", "character varying"},
			{"created_at", "timestamp with time zone"},
		}},
	}
}

// RunAksara is what to do where Aksara's tables are missing.
const RunAksara = "run Aksara's migrations (aksara makemigrations, then aksara migrate: " +
	"where the project has no migration file of its own, aksara migrate leaves the tables of Operations out)"

// checkTables refuses tables of another shape and, unless they are to be created, missing ones.
func (m *migration) checkTables(ctx context.Context) error {
	var faults []string
	for _, want := range shapes() {
		kind, columns, err := m.readTable(ctx, want.table)
		if err != nil {
			return err
		}
		if kind != "" {
			faults = append(faults, want.faults(kind, columns)...)
		} else if !m.Standalone {
			return fmt.Errorf("there is no table %s in schema %s of database %q: %s; or, without Aksara, relay migrate --standalone; or correct RELAY_DATABASE_SCHEMA or the database in RELAY_DATABASE_URL",
				want.table, quote(m.Schema), m.conn.Config().Database, RunAksara)
		}
	}
	if faults != nil {
		return fmt.Errorf("tables in schema %s are not of the shape that Aksara gives them, nothing was changed: %s",
			quote(m.Schema), strings.Join(faults, "; "))
	}
	return nil
}

// faults tells what is not as it should be.
func (s shape) faults(kind string, columns []column) (faults []string) {
	const ordinaryTable = "r"
	if kind != ordinaryTable {
		return []string{s.table + " is not an ordinary table (partitioned, a view or the like)"}
	}
	for _, want := range s.columns {
		at := slices.IndexFunc(columns, func(c column) bool { return c.name == want.name })
		if at < 0 {
			faults = append(faults, fmt.Sprintf("%s has no column %s", s.table, want.name))
		} else if columns[at].kind != want.kind {
			faults = append(faults, fmt.Sprintf("%s.%s is %s, not %s", s.table, want.name, columns[at].kind, want.kind))
		}
	}
	return faults
}

// readTable tells what kind of relation has the name ("" for none) and its columns.
func (m *migration) readTable(ctx context.Context, table string) (kind string, columns []column, err error) {
	const query = `
		select c.relkind::text, coalesce(a.attname, ''), coalesce(format_type(a.atttypid, null), '')
		from pg_namespace n
		join pg_class c on c.relnamespace = n.oid
		left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
		where n.nspname = $1 and c.relname = $2
		order by a.attnum`
	err = m.look(ctx, "reading the columns of "+table, func(ctx context.Context) error {
		rows, err := m.conn.Query(ctx, query, m.Schema, table)
		if err != nil {
			return err
		}
		var c column
		_, err = pgx.ForEachRow(rows, []any{&kind, &c.name, &c.kind}, func() error {
			columns = append(columns, c)
			return nil
		})
		return err
	})
	return kind, columns, err
}

// ensureTables creates the schema and the tables that are not there. Each table is complete or absent.
func (m *migration) ensureTables(ctx context.Context) error {
	objects := []object{{
		name:  "schema " + quote(m.Schema),
		file:  "schema",
		made:  Created,
		owner: ownerOfDatabase(),
		there: m.schemaExists,
	}}
	for _, s := range shapes() {
		objects = append(objects, object{
			name:  "table " + s.table,
			file:  "table_" + s.table,
			made:  Created,
			owner: ownerOfSchema(),
			there: func(ctx context.Context) (bool, error) {
				kind, _, err := m.readTable(ctx, s.table)
				return kind != "", err
			},
		})
	}
	for _, o := range objects {
		if err := m.ensure(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func (m *migration) schemaExists(ctx context.Context) (exists bool, err error) {
	err = m.conn.QueryRow(ctx, `select exists (select from pg_namespace where nspname = $1)`, m.Schema).Scan(&exists)
	return exists, err
}
