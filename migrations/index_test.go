package migrations

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/pgtest"
)

func TestIndexState(t *testing.T) {
	t.Parallel()
	const predicate = ` where coalesce(exported_at, 'infinity') = 'infinity'`
	cases := map[string]struct {
		sql  string
		want State
	}{
		"nothing":             {``, Missing},
		"as it is made":       {newDDL("s", "").text("index_create"), Ready},
		"without predicate":   {`create index relay_outbox_operation on s.aksara_operation_outbox (operation_id, id)`, OtherDefinition},
		"provable predicate":  {`create index relay_outbox_operation on s.aksara_operation_outbox (operation_id, id) where exported_at is null`, OtherDefinition},
		"columns turned":      {`create index relay_outbox_operation on s.aksara_operation_outbox (id, operation_id)` + predicate, OtherDefinition},
		"one column":          {`create index relay_outbox_operation on s.aksara_operation_outbox (operation_id)` + predicate, OtherDefinition},
		"descending":          {`create index relay_outbox_operation on s.aksara_operation_outbox (operation_id, id desc)` + predicate, OtherDefinition},
		"one more":            {`create index relay_outbox_operation on s.aksara_operation_outbox (operation_id, id) include (topic)` + predicate, OtherDefinition},
		"unique":              {`create unique index relay_outbox_operation on s.aksara_operation_outbox (operation_id, id)` + predicate, OtherDefinition},
		"an expression":       {`create index relay_outbox_operation on s.aksara_operation_outbox ((operation_id), (id + 0))` + predicate, OtherDefinition},
		"on another table":    {`create index relay_outbox_operation on s.aksara_operation_transitions (operation_id, id)`, NameTaken},
		"a table of its name": {`create table s.relay_outbox_operation ()`, NameTaken},
		"in another schema":   {`create schema o; create table o.aksara_operation_outbox (like s.aksara_operation_outbox); ` + newDDL("o", "").names.Replace(`create index relay_outbox_operation on :"schema".aksara_operation_outbox (operation_id, id)`), Missing},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := tablesOnly(t, "s")
			if c.sql != "" {
				exec(t, conn, c.sql)
			}
			wantState(t, conn, "s", c.want)
			if c.want == Missing || c.want == Ready {
				return
			}
			m, r := impatient(conn, Options{Schema: "s"})
			err := m.run(t.Context(), (*migration).everything)
			if c.want == NameTaken {
				mustContain(t, err, "something else", "relay_outbox_operation")
				wantState(t, conn, "s", NameTaken)
				return
			}
			if err != nil || r.outcomes()["index relay_outbox_operation"] != Rebuilt {
				t.Errorf("run: %v, %v", r.outcomes(), err)
			}
			wantState(t, conn, "s", Ready)
		})
	}
}

func TestIndexStateForARoleWithoutRights(t *testing.T) {
	t.Parallel()
	db := emptyDatabase(t)
	mustRun(t, db.Conn(t), Options{Schema: "s", Standalone: true})
	wantState(t, newRole(t, db).conn(t), "s", Ready)
}

func TestInvalidIndexIsRebuilt(t *testing.T) {
	t.Parallel()
	conn := tablesOnly(t, "s")
	mustRun(t, conn, Options{Schema: "s"})
	exec(t, conn, `update pg_index set indisvalid = false where indexrelid = 's.relay_outbox_operation'::regclass`)
	wantState(t, conn, "s", Invalid)
	if outcome := mustRun(t, conn, Options{Schema: "s", DryRun: true})["index relay_outbox_operation"]; outcome != WouldRebuild {
		t.Errorf("dry run: %s", outcome)
	}
	wantState(t, conn, "s", Invalid)
	if outcome := mustRun(t, conn, Options{Schema: "s"})["index relay_outbox_operation"]; outcome != Rebuilt {
		t.Errorf("run: %s", outcome)
	}
	wantState(t, conn, "s", Ready)
}

// A build stands behind every open transaction that has written to the table. Writers go on; the wait is reported with
// the session that is waited for; no time-out of the role cuts it short.
func TestBuildWaitsForAnOpenTransaction(t *testing.T) {
	t.Parallel()
	db := emptyDatabase(t)
	conn := db.Conn(t)
	mustTables(t, conn, "s")
	exec(t, conn, `set lock_timeout = '10ms'; set statement_timeout = '2s'`)
	open := openWriter(t, db, "s")

	m, r := impatient(conn, Options{Schema: "s"})
	done := m.start(t.Context())
	blocker := fmt.Sprintf("waiting for the transaction of pid %d", open.PgConn().PID())
	eventually(t, func() error {
		if !r.has(Building, blocker) {
			return errNotYet
		}
		return nil
	})
	if err := appendEvents(t.Context(), db.Conn(t), "s", 3); err != nil {
		t.Errorf("an application can't write meanwhile: %v", err)
	}
	exec(t, open, `commit`)
	if err := mustEnd(t, done); err != nil {
		t.Fatalf("after the transaction: %v", err)
	}
	wantState(t, conn, "s", Ready)
}

// What cuts a build short leaves an invalid index, and the next run mends it.
func TestInterruptedBuildIsMended(t *testing.T) {
	t.Parallel()
	cuts := map[string]func(t *testing.T, pid uint32, other *pgx.Conn, cancel context.CancelFunc){
		"session killed": func(t *testing.T, pid uint32, other *pgx.Conn, _ context.CancelFunc) {
			read[bool](t, other, `select pg_terminate_backend($1)`, pid)
		},
		"statement cancelled": func(t *testing.T, pid uint32, other *pgx.Conn, _ context.CancelFunc) {
			read[bool](t, other, `select pg_cancel_backend($1)`, pid)
		},
		"context ended": func(_ *testing.T, _ uint32, _ *pgx.Conn, cancel context.CancelFunc) {
			cancel()
		},
	}
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := emptyDatabase(t)
			conn, other := db.Conn(t), db.Conn(t)
			mustTables(t, conn, "s")
			open := openWriter(t, db, "s")

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			m, _ := impatient(conn, Options{Schema: "s"})
			pid := conn.PgConn().PID()
			done := m.start(ctx)
			eventually(t, func() error { return building(t, other) })
			cut(t, pid, other, cancel)
			err := mustEnd(t, done)
			mustContain(t, err, "index relay_outbox_operation")
			if conn.IsClosed() {
				mustContain(t, err, "run this again")
			}
			// the open transaction is still there: only a build that has really ended lets go of its turn
			eventually(t, func() error {
				if n := advisoryLocks(t, other); n != 0 {
					return fmt.Errorf("%d advisory locks", n)
				}
				return nil
			})
			wantState(t, other, "s", Invalid)

			exec(t, open, `rollback`)
			if outcome := mustRun(t, other, Options{Schema: "s"})["index relay_outbox_operation"]; outcome != Rebuilt {
				t.Errorf("next run: %s", outcome)
			}
			wantState(t, other, "s", Ready)
		})
	}
}

func TestBuildOnAReadOnlySession(t *testing.T) {
	t.Parallel()
	conn := tablesOnly(t, "s")
	exec(t, conn, `set default_transaction_read_only = on`)
	m, _ := impatient(conn, Options{Schema: "s"})
	mustContain(t, m.run(t.Context(), (*migration).everything), "connect to the primary")
}

// tablesOnly is a database with tables that no run has seen.
func tablesOnly(t *testing.T, schema string) *pgx.Conn {
	t.Helper()
	conn := emptyDatabase(t).Conn(t)
	mustTables(t, conn, schema)
	return conn
}

func mustTables(t *testing.T, conn *pgx.Conn, schema string) {
	t.Helper()
	if err := StandaloneTables(t.Context(), conn.Config().ConnString(), schema); err != nil {
		t.Fatal(err)
	}
}

// openWriter is a session in a transaction that has written an event.
func openWriter(t *testing.T, db *pgtest.DB, schema string) *pgx.Conn {
	t.Helper()
	conn := db.Conn(t)
	exec(t, conn, `begin`)
	if err := appendEvents(t.Context(), conn, schema, 1); err != nil {
		t.Fatal(err)
	}
	return conn
}

func building(t *testing.T, conn *pgx.Conn) error {
	t.Helper()
	n := read[int](t, conn, `select count(*) from pg_stat_progress_create_index where datname = current_database()
		and phase = 'waiting for writers before build'`)
	if n == 0 {
		return errNotYet
	}
	return nil
}
