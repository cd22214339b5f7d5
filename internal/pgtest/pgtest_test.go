package pgtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestDatabasesComeFromOneTemplateAndAreApart(t *testing.T) {
	t.Parallel()
	var applied atomic.Int32
	setup := Setup{Name: "apart", Apply: func(ctx context.Context, url string) error {
		applied.Add(1)
		_, err := execute(url, "CREATE TABLE event (n int); INSERT INTO event VALUES (1)")
		return err
	}}
	first := Database(t, setup)
	first.Exec(t, "INSERT INTO event VALUES ($1)", 2)
	second := Database(t, setup)

	var count int
	if err := second.Conn(t).QueryRow(t.Context(), "SELECT count(*) FROM event").Scan(&count); err != nil {
		t.Fatal(err)
	}
	if count != 1 {
		t.Errorf("second database has %d rows, want the template's 1", count)
	}
	if err := first.Pool(t).QueryRow(t.Context(), "SELECT count(*) FROM event").Scan(&count); err != nil {
		t.Fatal(err)
	}
	if count != 2 {
		t.Errorf("first database has %d rows, want 2", count)
	}
	if got := applied.Load(); got != 1 {
		t.Errorf("Apply ran %d times, want once", got)
	}
}

func TestDatabaseAndRolesGoWithTheTest(t *testing.T) {
	t.Parallel()
	var db *DB
	t.Run("user", func(t *testing.T) {
		db = Database(t, Setup{Name: "empty"})
		address := db.Role(t, "worker", "BYPASSRLS")
		db.Exec(t, "CREATE TABLE event (n int); GRANT SELECT ON event TO "+User(t, address))
		// Left open on purpose: it must not keep the database.
		conn, err := pgx.Connect(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		var bypass bool
		err = conn.QueryRow(t.Context(), "SELECT rolbypassrls FROM pg_roles WHERE rolname = current_user").Scan(&bypass)
		if err != nil || !bypass {
			t.Errorf("rolbypassrls = %t, %v, want the given attribute", bypass, err)
		}
		if _, err := conn.Exec(t.Context(), "SELECT * FROM event"); err != nil {
			t.Errorf("granted SELECT: %v", err)
		}
		if _, err := conn.Exec(t.Context(), "DELETE FROM event"); err == nil {
			t.Error("DELETE without a grant succeeded")
		}
	})
	if db == nil {
		t.Fatal("no database was made")
	}
	if got := leftovers(t, db.cluster, db.Name); got != "" {
		t.Errorf("left on the server after the test: %s", got)
	}
}

func TestFailedSetupIsReportedToEachTest(t *testing.T) {
	t.Parallel()
	cluster, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken on purpose")
	setup := Setup{Name: "broken", Apply: func(context.Context, string) error { return broken }}
	for range 2 {
		if _, err := cluster.create(setup); !errors.Is(err, broken) {
			t.Errorf("create = %v, want the set-up's error", err)
		}
	}
}

func TestSweepRemovesOnlyWhatItsOwnerLeft(t *testing.T) {
	t.Parallel()
	db := Database(t, Setup{Name: "empty"})
	db.Role(t, "kept", "")
	// The test of a restored database lost its copy to the next package's process.
	beside := db.Name + "_copy"
	execAll(t, db, "CREATE DATABASE "+quote(beside))
	t.Cleanup(func() { execAll(t, db, "DROP DATABASE "+quote(beside)) })

	gone, err := takeOwner(db.cluster.url("postgres", nil))
	if err != nil {
		t.Fatal(err)
	}
	orphan := gone.prefix + "1"
	execAll(t, db, "CREATE DATABASE "+quote(orphan), "CREATE ROLE "+quote("worker_"+gone.prefix+"2"))
	if err := gone.lock.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	// The server may learn of the closed connection a moment later than the next owner looks.
	for t.Context().Err() == nil && leftovers(t, db.cluster, gone.prefix) != "" {
		next, err := takeOwner(db.cluster.url("postgres", nil))
		if err != nil {
			t.Fatal(err)
		}
		next.lock.Close(t.Context())
	}
	left := strings.Fields(leftovers(t, db.cluster, db.cluster.owner.prefix))
	for _, want := range []string{db.Name, beside, "kept_" + db.cluster.owner.prefix} {
		if !slices.ContainsFunc(left, func(name string) bool { return strings.HasPrefix(name, want) }) {
			t.Errorf("left of a living owner: %s, want %s among them", left, want)
		}
	}
}

func TestServerIsTheTestsOwn(t *testing.T) {
	t.Parallel()
	server := Server(t, "max_connections=20")
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := execute(server.URL("postgres"), "SELECT 1"); err != nil {
		t.Fatal(err)
	}
}

func execAll(t *testing.T, db *DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		db.Exec(t, statement)
	}
}

// leftovers lists the databases and roles with part in their names.
func leftovers(t *testing.T, c *cluster, part string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.url("postgres", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var list string
	err = conn.QueryRow(t.Context(), `SELECT coalesce(string_agg(name, ' '), '') FROM (
		SELECT datname AS name FROM pg_database UNION ALL SELECT rolname FROM pg_roles) AS names
		WHERE strpos(name, $1) > 0`, part).Scan(&list)
	if err != nil {
		t.Fatal(err)
	}
	return list
}
