package migrations

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
)

// The role can do what a relay does and nothing else, judged over all privileges on all tables and columns.
func TestGrantsAreTheSmallestSet(t *testing.T) {
	t.Parallel()
	db := emptyDatabase(t)
	conn := db.Conn(t)
	relay := newRole(t, db)
	mustRun(t, conn, Options{Schema: "s", Standalone: true, GrantTo: relay.name})

	want := []string{
		"aksara_operation_outbox.claim_expires_at UPDATE",
		"aksara_operation_outbox.claimed_by UPDATE",
		"aksara_operation_outbox.export_attempts UPDATE",
		"aksara_operation_outbox.exported_at UPDATE",
		"aksara_operation_outbox.last_error UPDATE",
		"aksara_operation_outbox.next_attempt_at UPDATE",
		"aksara_operation_transitions.id SELECT",
		"aksara_operation_transitions.operation_id SELECT",
		"aksara_operation_transitions.state_version SELECT",
		"aksara_operations.application_namespace SELECT",
		"aksara_operations.id SELECT",
		"schema USAGE",
		"table aksara_operation_outbox SELECT",
	}
	if got := privileges(t, conn, relay.name); !slices.Equal(got, want) {
		t.Errorf("privileges:\n got %q\nwant %q", got, want)
	}
}

// privileges are all that the role has in schema s: of columns only those that it does not have for the whole table.
func privileges(t *testing.T, conn *pgx.Conn, role string) []string {
	t.Helper()
	return read[[]string](t, conn, `
		with relation as (select c.oid, c.relname, c.relkind from pg_class c where c.relnamespace = 's'::regnamespace)
		select array_agg(line order by line collate "C") from (
			select 'schema ' || p from unnest(array['CREATE', 'USAGE']) p where has_schema_privilege($1, 's', p)
			union all
			select 'table ' || relname || ' ' || p
			from relation, unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) p
			where relkind = 'r' and has_table_privilege($1, oid, p)
			union all
			select relname || '.' || attname || ' ' || p
			from relation join pg_attribute on attrelid = oid, unnest(array['SELECT', 'INSERT', 'UPDATE', 'REFERENCES']) p
			where relkind = 'r' and not attisdropped
			  and has_column_privilege($1, oid, attnum, p) and not has_table_privilege($1, oid, p)
			union all
			select 'sequence ' || relname || ' ' || p
			from relation, unnest(array['USAGE', 'SELECT', 'UPDATE']) p
			where case relkind when 'S' then has_sequence_privilege($1, oid, p) end
		) t(line)`, role)
}

func TestOnlyWhatIsMissingIsGranted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ give, missing string }{
		"through another role": {`grant usage on schema s to :"role"; grant select on s.aksara_operation_outbox, s.aksara_operations, s.aksara_operation_transitions to public`,
			"UPDATE on six columns of aksara_operation_outbox"},
		"five of six columns": {`grant usage on schema s to :"role"; grant select on all tables in schema s to :"role";
			grant update (claimed_by, claim_expires_at, export_attempts, exported_at, last_error) on s.aksara_operation_outbox to :"role"`,
			"UPDATE on six columns of aksara_operation_outbox"},
		"columns of what is needed whole": {`grant usage on schema s to :"role"; grant update, select (id, payload) on s.aksara_operation_outbox to :"role";
			grant select on s.aksara_operations, s.aksara_operation_transitions to :"role"`,
			"SELECT on aksara_operation_outbox"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := emptyDatabase(t)
			conn := db.Conn(t)
			mustTables(t, conn, "s")
			relay := newRole(t, db)
			exec(t, conn, newDDL("s", relay.name).names.Replace(c.give))

			m, r := impatient(conn, Options{Schema: "s", GrantTo: relay.name})
			if err := m.run(t.Context(), (*migration).everything); err != nil {
				t.Fatal(err)
			}
			granted := r.outcomesOf(Granted)
			if len(granted) != 1 || granted[0].Name != c.missing+" for role "+quote(relay.name) {
				t.Errorf("granted: %+v", granted)
			}
		})
	}
}

// An owner of all, superusers first, has every privilege already.
func TestASuperuserLacksNothing(t *testing.T) {
	t.Parallel()
	conn := tablesOnly(t, "s")
	outcomes := mustRun(t, conn, Options{Schema: "s", GrantTo: conn.Config().User})
	if outcome := outcomes["USAGE on the schema for role "+quote(conn.Config().User)]; outcome != AlreadyThere {
		t.Errorf("%s", outcome)
	}
}

func TestGrantToNobody(t *testing.T) {
	t.Parallel()
	conn := tablesOnly(t, "s")
	before := catalogue(t, conn)
	for _, name := range []string{"nobody here", "public"} {
		mustContain(t, Run(t.Context(), conn, Options{Schema: "s", GrantTo: name}), "there is no role "+quote(name), "create")
	}
	if after := catalogue(t, conn); after != before {
		t.Errorf("the catalogue has changed:\n%s\n%s", before, after)
	}
}

// The server only warns when someone who may use an object, but not give it on, grants it.
func TestGrantWithoutTheRightToGive(t *testing.T) {
	t.Parallel()
	db := emptyDatabase(t)
	conn := db.Conn(t)
	mustTables(t, conn, "s")
	mustRun(t, conn, Options{Schema: "s"})
	giver, relay := newRole(t, db), newRole(t, db)
	exec(t, conn, `grant usage on schema s to `+quote(giver.name))
	err := Run(t.Context(), giver.conn(t), Options{Schema: "s", GrantTo: relay.name})
	mustContain(t, err, "USAGE on the schema", "nothing has changed", "the owner of the schema", quote(conn.Config().User))
}
