package pgserver

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/childproc"
)

func TestServerStartsStopsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	server := start(t, Options{Settings: []string{"max_connections=33"}})
	if got := query[string](t, server, "show max_connections"); got != "33" {
		t.Errorf("max_connections = %s, want the given 33", got)
	}
	if got := query[string](t, server, "show synchronous_commit"); got != "off" {
		t.Errorf("synchronous_commit = %s, want off in a throw-away server", got)
	}
	if got, want := filepath.Dir(server.Dir()) == memory, inMemory(memory); got != want {
		t.Errorf("folder %s is in %s: %t, want %t", server.Dir(), memory, got, want)
	}
	if got := query[string](t, server, "show listen_addresses"); got != "127.0.0.1" {
		t.Errorf("listen_addresses = %s, want loopback only", got)
	}
	for range 2 {
		if err := server.Stop(); err != nil {
			t.Fatalf("Stop: %v", err)
		}
	}
	if _, err := os.Stat(server.Dir()); !os.IsNotExist(err) {
		t.Errorf("temporary folder after Stop: %v, want it gone", err)
	}
	if conn, err := net.Dial("tcp", childproc.Loopback(server.Port())); err == nil {
		conn.Close()
		t.Error("the port still takes connections after Stop")
	}
}

func TestTwoServersAtOnce(t *testing.T) {
	t.Parallel()
	first, second := start(t, Options{}), start(t, Options{Durable: true})
	if first.Port() == second.Port() || first.Dir() == second.Dir() {
		t.Fatalf("both servers use port %d and folder %s", first.Port(), first.Dir())
	}
	if got := query[string](t, second, "show synchronous_commit"); got != "on" {
		t.Errorf("synchronous_commit = %s, want on in a durable server", got)
	}
	if filepath.Dir(second.Dir()) == memory {
		t.Errorf("folder %s of a durable server is in memory", second.Dir())
	}
	for _, server := range []*Server{first, second} { // the relay's exactly-once mode needs it
		if got := query[string](t, server, "show fsync"); got != "on" {
			t.Errorf("fsync = %s, want on", got)
		}
	}
}

func TestRestartKeepsDataAndPort(t *testing.T) {
	t.Parallel()
	server := start(t, Options{})
	port := server.Port()
	execute(t, server, "create table kept as select 1 as n")

	if err := server.Restart(deadline(t)); err != nil {
		t.Fatalf("Restart: %v", err)
	}
	if got := query[int](t, server, "select count(*) from kept"); got != 1 {
		t.Errorf("%d rows after Restart, want 1", got)
	}
	if err := server.Kill(); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	if err := server.Restart(deadline(t)); err != nil {
		t.Fatalf("Restart after Kill: %v", err)
	}
	if got := query[int](t, server, "select count(*) from kept"); got != 1 {
		t.Errorf("%d rows after Kill and Restart, want 1", got)
	}
	if server.Port() != port {
		t.Errorf("port %d after restarts, want %d", server.Port(), port)
	}
}

func TestGivenFolderIsKeptAndUsedAgain(t *testing.T) {
	t.Parallel()
	user, err := childproc.Unprivileged("postgres", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	// A test's own folder is closed to the account that a server of root's runs as.
	parent, err := childproc.NewTempDir("pgserver-test-", user)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { parent.Remove() })
	if err := os.Chmod(parent.Path, 0o755); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent.Path, "kept")

	first := start(t, Options{Dir: dir})
	execute(t, first, "create table kept ()")
	if err := first.Stop(); err != nil {
		t.Fatalf("Stop: %v", err)
	}
	second := start(t, Options{Dir: dir})
	if got := query[int](t, second, "select count(*) from kept"); got != 0 {
		t.Errorf("%d rows, want the empty table of the first server", got)
	}
}

func TestFailedStartShowsTheServersOwnWords(t *testing.T) {
	t.Parallel()
	server, err := Start(deadline(t), Options{Settings: []string{"no_such_setting=1"}})
	if err == nil {
		server.Stop()
		t.Fatal("Start with an unknown setting succeeded")
	}
	if message := err.Error(); !strings.Contains(message, "no_such_setting") {
		t.Errorf("error does not show the server's output: %s", message)
	}
}

func start(t *testing.T, options Options) *Server {
	t.Helper()
	server, err := Start(deadline(t), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	return server
}

func connect(t *testing.T, server *Server) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(deadline(t), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func execute(t *testing.T, server *Server, sql string) {
	t.Helper()
	if _, err := connect(t, server).Exec(deadline(t), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// query returns a statement's only value.
func query[T any](t *testing.T, server *Server, sql string) (value T) {
	t.Helper()
	if err := connect(t, server).QueryRow(deadline(t), sql).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
