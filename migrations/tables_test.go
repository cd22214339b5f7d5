package migrations

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestRefusesTablesOfAnotherShape(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		sql  string
		says []string
	}{
		"a column of another type": {`alter table s.aksara_operation_outbox alter payload type json`,
			[]string{"aksara_operation_outbox.payload is json, not jsonb"}},
		"columns missing": {`alter table s.aksara_operation_outbox drop last_error; alter table s.aksara_operations drop application_namespace cascade`,
			[]string{"aksara_operation_outbox has no column last_error", "aksara_operations has no column application_namespace"}},
		"a view": {`alter table s.aksara_operation_outbox rename to other; create view s.aksara_operation_outbox as select * from s.other`,
			[]string{"aksara_operation_outbox is not an ordinary table"}},
		"partitioned": {`drop table s.aksara_operation_outbox; create table s.aksara_operation_outbox (id bigint) partition by list (id)`,
			[]string{"aksara_operation_outbox is not an ordinary table"}},
		"no columns at all": {`drop table s.aksara_operation_outbox; create table s.aksara_operation_outbox ()`,
			[]string{"aksara_operation_outbox has no column id"}},
	}
	for name, c := range cases {
		for _, standalone := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				conn := tablesOnly(t, "s")
				exec(t, conn, c.sql)
				before := catalogue(t, conn)
				err := Run(t.Context(), conn, Options{Schema: "s", Standalone: standalone})
				mustContain(t, err, append(c.says, `schema "s"`, "nothing was changed")...)
				if after := catalogue(t, conn); after != before {
					t.Errorf("the catalogue has changed:\n%s\n%s", before, after)
				}
			})
		}
	}
}

// A later version of Aksara may have more columns.
func TestMoreColumnsAreNoFault(t *testing.T) {
	t.Parallel()
	conn := tablesOnly(t, "s")
	exec(t, conn, `alter table s.aksara_operation_outbox add trace text; alter table s.aksara_operations drop fence`)
	mustRun(t, conn, Options{Schema: "s", Standalone: true})
}

func TestMissingTables(t *testing.T) {
	t.Parallel()
	db := emptyDatabase(t)
	conn := db.Conn(t)
	err := Run(t.Context(), conn, Options{Schema: "nowhere"})
	mustContain(t, err, "aksara_operations", `schema "nowhere"`, db.Name, "aksara makemigrations, then aksara migrate", "without Aksara, relay migrate --standalone")
	mustContain(t, Run(t.Context(), conn, Options{Schema: "nowhere", DryRun: true}), "--standalone")
}

// What is there stays; what an interruption left out is made.
func TestStandaloneCompletesTables(t *testing.T) {
	t.Parallel()
	conn := emptyDatabase(t).Conn(t)
	withoutTransitions(t, conn)
	outcomes := mustRun(t, conn, Options{Schema: "s", Standalone: true})
	for name, want := range map[string]Outcome{
		"table aksara_operations":            AlreadyThere,
		"table aksara_operation_transitions": Created,
		"table aksara_operation_outbox":      Created,
	} {
		if outcomes[name] != want {
			t.Errorf("%s: %s, want %s", name, outcomes[name], want)
		}
	}
}

// An application gives what the tables' comments say and no more. Row security holds for the owner as well.
func TestStandaloneTablesTakeEvents(t *testing.T) {
	t.Parallel()
	db := emptyDatabase(t)
	owner := newRole(t, db)
	db.Exec(t, `create schema s authorization `+quote(owner.name))
	conn := owner.conn(t)
	mustRun(t, conn, Options{Schema: "s", Standalone: true})
	if err := appendEvents(t.Context(), conn, "s", 3); err != nil {
		t.Fatal(err)
	}
	const count = `select count(*) from s.aksara_operation_outbox join s.aksara_operation_transitions t on t.id = transition_id
		join s.aksara_operations o on o.id = t.operation_id`
	for scope, want := range map[string]int{"acme": 3, "other": 0, "": 0} {
		exec(t, conn, `set aksara.current_tenant_id = '`+scope+`'`)
		if n := read[int](t, conn, count); n != want {
			t.Errorf("scope %q sees %d events, want %d", scope, n, want)
		}
	}
	if err := insertForAnother(t, conn); err == nil {
		t.Error("a scope may write another's rows")
	}
}

func insertForAnother(t *testing.T, conn *pgx.Conn) error {
	t.Helper()
	_, err := conn.Exec(t.Context(), `insert into s.aksara_operations (application_namespace, tenant_scope) values ('shop', 'another')`)
	return err
}
