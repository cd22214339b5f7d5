package migrations

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A statement that needs a strong lock must not stand in the queue for it: all later writers would stand behind it.
func TestTableLocksAreNotQueuedFor(t *testing.T) {
	t.Parallel()
	db := emptyDatabase(t)
	conn, open, application := db.Conn(t), db.Conn(t), db.Conn(t)
	withoutTransitions(t, conn)
	exec(t, open, `begin; `+insertOperation)

	m, r := impatient(conn, Options{Schema: "s", Standalone: true})
	done := m.start(t.Context())
	for range 3 { // each after one more attempt has been given up, or while it waits
		attempts := len(r.outcomesOf(Waiting))
		exec(t, application, `set statement_timeout = '20s'; `+insertOperation)
		eventually(t, func() error {
			if len(r.outcomesOf(Waiting)) <= attempts {
				return errNotYet
			}
			return nil
		})
	}
	exec(t, open, `commit`)
	if err := mustEnd(t, done); err != nil {
		t.Fatalf("after the transaction: %v", err)
	}
	if outcome := r.outcomes()["table aksara_operation_transitions"]; outcome != Created {
		t.Errorf("table: %s", outcome)
	}
}

func TestWaitingForATableLockIsGivenUp(t *testing.T) {
	t.Parallel()
	db := emptyDatabase(t)
	conn, open := db.Conn(t), db.Conn(t)
	withoutTransitions(t, conn)
	exec(t, open, `begin; `+insertOperation)

	m, _ := impatient(conn, Options{Schema: "s", Standalone: true})
	m.patience = time.Millisecond
	err := mustEnd(t, m.start(t.Context()))
	mustContain(t, err, "table aksara_operation_transitions", "given up", "pg_locks")

	exec(t, open, `rollback`)
	mustRun(t, conn, Options{Schema: "s", Standalone: true})
}

func TestNotTheOwner(t *testing.T) {
	t.Parallel()
	db := emptyDatabase(t)
	owner := db.Conn(t)
	mustTables(t, owner, "s")
	role := newRole(t, db)
	stranger := role.conn(t)

	m, _ := impatient(stranger, Options{Schema: "s"})
	mustContain(t, m.run(t.Context(), (*migration).everything),
		"index relay_outbox_operation", "connected as "+quote(role.name), "connect as the owner of aksara_operation_outbox", quote(owner.Config().User))
	wantState(t, owner, "s", Missing)

	m, _ = impatient(stranger, Options{Schema: "new", Standalone: true})
	mustContain(t, m.run(t.Context(), (*migration).everything), `schema "new"`, "connect as the owner of the database")

	// nothing is to do: no rights are needed
	mustRun(t, owner, Options{Schema: "s"})
	mustRun(t, stranger, Options{Schema: "s"})
}

func TestAnOwnerNeedsNoSuperuser(t *testing.T) {
	t.Parallel()
	db := emptyDatabase(t)
	admin := db.Conn(t)
	owner := newRole(t, db)
	exec(t, admin, `create schema s authorization `+quote(owner.name))
	mustRun(t, owner.conn(t), Options{Schema: "s", Standalone: true, GrantTo: newRole(t, db).name})
	wantState(t, admin, "s", Ready)
}

func TestErrorWhenTheConnectionIsGone(t *testing.T) {
	t.Parallel()
	conn := emptyDatabase(t).Conn(t)
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), conn, Options{}); err == nil {
		t.Error("no error")
	}
}

const insertOperation = `select set_config('aksara.current_tenant_id', 'acme', false);
	insert into s.aksara_operations (application_namespace, tenant_scope) values ('shop', 'acme')`

// withoutTransitions leaves a schema in which the next table to create refers to one that is written to.
func withoutTransitions(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	exec(t, conn, `create schema s`)
	exec(t, conn, newDDL("s", "").text("table_aksara_operations"))
}
