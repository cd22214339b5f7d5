package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"outboxrelay/migrations"
)

const (
	outbox      = "aksara_operation_outbox"
	operations  = "aksara_operations"
	transitions = "aksara_operation_transitions"
)

// need is a table with the columns that statements read and write.
type need struct {
	table  string
	read   []column
	update []string // of those, the ones that are written
}

type column struct{ name, kind string }

// needs is all that the statements use. Only claims without the supporting index use
// the transitions.
func needs(indexed bool) []need {
	const instant = "timestamp with time zone"
	all := []need{{
		table: outbox,
		read: []column{
			{"id", "bigint"}, {"operation_id", "uuid"}, {"tenant_scope", "text"}, {"topic", "character varying"}, {"payload", "jsonb"},
			{"export_attempts", "integer"}, {"next_attempt_at", instant}, {"exported_at", instant},
			{"claimed_by", "character varying"}, {"claim_expires_at", instant}, {"last_error", "character varying"}, {"created_at", instant},
		},
		update: []string{"claimed_by", "claim_expires_at", "export_attempts", "exported_at", "last_error", "next_attempt_at"},
	}, {
		table: operations,
		read:  []column{{"id", "uuid"}, {"application_namespace", "character varying"}},
	}}
	if !indexed {
		all[0].read = append(all[0].read, column{"transition_id", "bigint"})
		all = append(all, need{
			table: transitions,
			read:  []column{{"id", "bigint"}, {"operation_id", "uuid"}, {"state_version", "bigint"}},
		})
	}
	return all
}

func (i *inspection) needs() []need { return needs(i.index == migrations.Ready) }

// table is what the catalogue says about one table.
type table struct {
	Name            string
	Secured, Forced bool // row security
	Active          bool // row security holds for the role
}

func (i *inspection) indexState(ctx context.Context) (err error) {
	i.index, err = migrations.IndexState(ctx, i.conn, i.schema)
	return err
}

// lookTables looks for the schema and the tables.
func (i *inspection) lookTables(ctx context.Context) error {
	var usage *bool
	err := i.conn.QueryRow(ctx,
		`select (select has_schema_privilege(oid, 'USAGE') from pg_namespace where nspname = $1)`, i.schema).Scan(&usage)
	if err != nil {
		return err
	}
	if usage == nil {
		return i.misplaced(ctx, fmt.Sprintf("there is no schema %q", i.schema))
	}
	if !*usage {
		i.lacks("USAGE on schema "+quote(i.schema), "usage on schema "+quote(i.schema))
	}
	found, err := collect(ctx, i, pgx.RowToStructByPos[table], `
		select c.relname::text, c.relrowsecurity, c.relforcerowsecurity, row_security_active(c.oid)
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where n.nspname = $1 and c.relname = any($2) and c.relkind in ('r', 'p')`,
		[]string{outbox, operations, transitions})
	if err != nil {
		return err
	}
	i.tables = map[string]table{}
	for _, t := range found {
		i.tables[t.Name] = t
	}
	var missing []string
	for _, n := range i.needs() {
		if _, ok := i.tables[n.table]; !ok {
			missing = append(missing, n.table)
		}
	}
	if missing != nil {
		return i.misplaced(ctx, fmt.Sprintf("schema %q has no table %s", i.schema, strings.Join(missing, ", ")))
	}
	i.ok("tables", fmt.Sprintf("schema %q has the tables", i.schema))
	return nil
}

// misplaced tells of missing tables, and of the schemas where there are some.
func (i *inspection) misplaced(ctx context.Context, seen string) error {
	elsewhere, err := collect(ctx, i, pgx.RowTo[string], `
		select n.nspname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relname = $2 and c.relkind in ('r', 'p') and n.nspname <> $1
		order by 1 limit 1`, outbox)
	if err != nil {
		return err
	}
	do := migrations.RunAksara + "; or, without Aksara, relay migrate --standalone; or correct RELAY_DATABASE_SCHEMA or the database in RELAY_DATABASE_URL"
	if len(elsewhere) > 0 {
		do = fmt.Sprintf("set RELAY_DATABASE_SCHEMA to the schema that has them, such as %q; or %s", elsewhere[0], migrations.RunAksara)
	}
	i.fail("tables", seen, do)
	return errBlind
}

// lookColumns compares the columns with what the statements need. Others may be there
// as well.
func (i *inspection) lookColumns(ctx context.Context) error {
	type attribute struct{ Table, Name, Kind string }
	found, err := collect(ctx, i, pgx.RowToStructByPos[attribute], `
		select c.relname::text, a.attname::text, format_type(a.atttypid, null)
		from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
		where n.nspname = $1 and c.relname = any($2) and a.attnum > 0 and not a.attisdropped`,
		[]string{outbox, operations, transitions})
	if err != nil {
		return err
	}
	said := len(i.findings)
	for _, n := range i.needs() {
		for _, want := range n.read {
			at := slices.IndexFunc(found, func(a attribute) bool { return a.Table == n.table && a.Name == want.name })
			if at < 0 {
				i.fail("columns", fmt.Sprintf("%s.%s is missing: %s is needed", n.table, want.name, want.kind), columnAdvice)
			} else if found[at].Kind != want.kind {
				i.fail("columns", fmt.Sprintf("%s.%s is %s: %s is needed", n.table, want.name, found[at].Kind, want.kind), columnAdvice)
			}
		}
	}
	i.okUnlessSaid(said, "columns", "the tables have the columns that are needed")
	return nil
}

const columnAdvice = "bring the tables to the shape that Aksara's migrations give them; RELAY_DATABASE_SCHEMA says where they are"
