package migrations

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/aksaratest"
)

// The standalone tables are Aksara's own, except for foreign keys to tables that aren't there and for the defaults that
// spare an application what only Aksara's workers need.
func TestStandaloneTablesAreAksaras(t *testing.T) {
	t.Parallel()
	db := emptyDatabase(t)
	aksaratest.Migrate(t, db.URL, "real")
	if err := StandaloneTables(t.Context(), db.URL, "ours"); err != nil {
		t.Fatal(err)
	}
	conn := db.Conn(t)
	real, ours := anatomy(t, conn, "real"), anatomy(t, conn, "ours")
	if len(real) < 100 {
		t.Fatalf("only %d facts about Aksara's tables: %q", len(real), real)
	}
	left := []string{
		"aksara_operation_transitions constraint aksara_operation_transitions_attempt_id_fkey: FOREIGN KEY (attempt_id) REFERENCES aksara_operation_attempts(id) ON DELETE SET NULL",
		"aksara_operations constraint fk_aksara_operations_current_attempt: FOREIGN KEY (current_attempt_id) REFERENCES aksara_operation_attempts(id) DEFERRABLE INITIALLY DEFERRED",
	}
	added := []string{
		"aksara_operations default action_name: 'application'::character varying",
		"aksara_operations default action_version: '1'::character varying",
		"aksara_operations default canonical_input_hash: repeat('0'::text, 64)",
		"aksara_operations default command_id: gen_random_uuid()",
		"aksara_operations default effect_class: 'postgres_atomic'::character varying",
		"aksara_operations default executor_type: 'inline'::character varying",
		"aksara_operations default principal_reference: '{}'::jsonb",
		"aksara_operations default principal_reference_hash: repeat('0'::text, 64)",
		"aksara_operations default resolver_key: 'application'::character varying",
		"aksara_operations default resolver_version: '1'::character varying",
		"aksara_operations default retain_until: 'infinity'::timestamp with time zone",
		"aksara_operations default state: 'ready'::character varying",
	}
	if got := without(real, ours); !slices.Equal(got, left) {
		t.Errorf("only Aksara has:\n got %q\nwant %q", got, left)
	}
	if got := without(ours, real); !slices.Equal(got, added) {
		t.Errorf("only the standalone tables have:\n got %q\nwant %q", got, added)
	}
}

func TestRunOnARealAksara(t *testing.T) {
	t.Parallel()
	db := emptyDatabase(t)
	aksaratest.Migrate(t, db.URL, "Real one")
	conn := db.Conn(t)
	relay := newRole(t, db)

	outcomes := mustRun(t, conn, Options{Schema: "Real one", Standalone: true, GrantTo: relay.name})
	for name, want := range map[string]Outcome{
		"table aksara_operation_outbox":                 AlreadyThere,
		"index relay_outbox_operation":                  Created,
		"storage parameters of aksara_operation_outbox": Set,
	} {
		if outcomes[name] != want {
			t.Errorf("%s: %s, want %s", name, outcomes[name], want)
		}
	}
	wantState(t, conn, "Real one", Ready)
}

// anatomy is all that the catalogue says about the three tables, one fact a line, without the schema's name.
func anatomy(t *testing.T, conn *pgx.Conn, schema string) []string {
	t.Helper()
	exec(t, conn, `set search_path = `+quote(schema)) // then names in the schema are told without it
	return read[[]string](t, conn, `
		with tables as (
			select c.* from pg_class c where c.relnamespace = $1::text::regnamespace
			  and c.relname in ('aksara_operations', 'aksara_operation_transitions', 'aksara_operation_outbox'))
		select array_agg(line order by line collate "C") from (
			select format('%s row security %s, forced %s, replica identity %s, persistence %s, options %s',
			              relname, relrowsecurity, relforcerowsecurity, relreplident, relpersistence, reloptions)
			from tables
			union all
			select format('%s column %s %s: %s, null %s, identity %L, generated %L, collation %s', relname, attnum, attname,
			              format_type(atttypid, atttypmod), not attnotnull, attidentity, attgenerated, attcollation)
			from tables join pg_attribute on attrelid = tables.oid where attnum > 0 and not attisdropped
			union all
			select format('%s default %s: %s', relname, attname, pg_get_expr(adbin, adrelid))
			from tables join pg_attrdef on adrelid = tables.oid join pg_attribute on attrelid = adrelid and attnum = adnum
			union all
			select format('%s constraint %s: %s', relname, conname, pg_get_constraintdef(pg_constraint.oid))
			from tables join pg_constraint on conrelid = tables.oid
			union all
			select format('%s index %s', relname, replace(pg_get_indexdef(indexrelid), quote_ident($1::text) || '.', ''))
			from tables join pg_index on indrelid = tables.oid
			union all
			select format('%s policy %s: permissive %s, command %s, roles %s, using %s, check %s', relname, polname, polpermissive,
			              polcmd, polroles, pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
			from tables join pg_policy on polrelid = tables.oid
			union all
			select format('%s trigger %s', relname, tgname)
			from tables join pg_trigger on tgrelid = tables.oid where not tgisinternal
		) t(line)`, schema)
}

// without returns the lines of a that b has not.
func without(a, b []string) (only []string) {
	for _, line := range a {
		if !slices.Contains(b, line) {
			only = append(only, line)
		}
	}
	return only
}
