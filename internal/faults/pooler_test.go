package faults_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/childproc"
	"outboxrelay/internal/relayproc"
)

// Three relays share two server connections, which the pooler hands out by the transaction: what one transaction sets must
// not be there in the next one's, be it a tenant or a prepared statement.
func TestThreeRelaysBehindAPooler(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Role = startPgBouncer(t, s.Role)
	names := []string{"acme", "globex", "initech", "umbra"}
	for _, name := range names {
		s.Fill(relayproc.Tenant(t, name), 300, 3)
	}
	s.watchConnections(2)
	var relays []*relayproc.Process
	for range 3 {
		relays = append(relays, relayproc.Start(t, s.Env(strings.Join(names, ","),
			map[string]string{"RELAY_DATABASE_POOLED": "true", "RELAY_BATCH_ROWS": "20"})))
	}
	s.relay = relays[0]
	s.deliveredOnce()
	s.rightTenants()
	for _, p := range relays {
		s.quiet(p)
	}
	if n := s.CountRows("export_attempts <> 1"); n > 0 {
		t.Errorf("%d rows were claimed more than once", n)
	}
}

// rightTenants fails unless each event names the tenant of its row.
func (s *scene) rightTenants() {
	s.T.Helper()
	rows, err := s.Pool.Query(s.T.Context(), "select distinct operation_id::text, tenant_scope from aksara_operation_outbox")
	if err != nil {
		s.T.Fatal(err)
	}
	owners := map[string]string{}
	var operation, tenant string
	if _, err := pgx.ForEachRow(rows, []any{&operation, &tenant}, func() error {
		owners[operation] = tenant
		return nil
	}); err != nil {
		s.T.Fatal(err)
	}
	for _, e := range s.Events() {
		if got, _ := e.Scope.Tenant(); got != owners[e.OperationID.String()] {
			s.T.Errorf("event %s came as tenant %q's, want %q", e.ID(), got, owners[e.OperationID.String()])
		}
	}
}

// startPgBouncer runs a pooler in transaction mode with two server connections, and gives the address of the database
// behind it.
func startPgBouncer(t *testing.T, database string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/pgbouncer") // where ordinary users' PATH does not lead
	}
	if err != nil {
		t.Fatalf("PgBouncer is not installed (Debian: apt-get install pgbouncer): %v", err)
	}
	account, err := childproc.Unprivileged("postgres", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := childproc.NewTempDir("relay-pgbouncer-", account)
	if err != nil {
		t.Fatal(err)
	}
	address := writePgBouncerFiles(t, dir.Path, database)
	process, err := childproc.Start(childproc.Command{
		Path: program, Args: []string{"-q", filepath.Join(dir.Path, "pgbouncer.ini")},
		Dir: dir.Path, Log: filepath.Join(dir.Path, "output"), User: account, Temp: dir,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Stop(syscall.SIGTERM, 10*time.Second); err != nil {
			t.Error(err)
		}
		if err := dir.Remove(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), relayproc.Patience)
	defer cancel()
	if err := process.AwaitReady(ctx, func(ctx context.Context) error { return answers(ctx, address) }); err != nil {
		t.Fatal(err)
	}
	return address.String()
}

// writePgBouncerFiles writes what PgBouncer reads, and gives the address at which it will serve the database.
func writePgBouncerFiles(t *testing.T, dir, database string) *url.URL {
	t.Helper()
	address, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	ports, err := childproc.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := address.User.Password()
	config := fmt.Sprintf(`[databases]
* = host=%s port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = transaction
default_pool_size = 2
`, address.Hostname(), address.Port(), ports[0], filepath.Join(dir, "users"))
	for name, content := range map[string]string{
		"pgbouncer.ini": config,
		"users":         fmt.Sprintf("%q %q\n", address.User.Username(), password),
	} {
		// The folder is another user's, who has to read it.
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	address.Host = net.JoinHostPort("127.0.0.1", fmt.Sprint(ports[0]))
	return address
}

func answers(ctx context.Context, address *url.URL) error {
	config, err := pgx.ParseConfig(address.String())
	if err != nil {
		return err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}
