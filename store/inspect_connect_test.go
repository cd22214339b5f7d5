package store_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"outboxrelay/envelope"
	"outboxrelay/internal/pgserver"
	"outboxrelay/internal/pgtest"
	"outboxrelay/migrations"
	"outboxrelay/store"
)

// altered is an address with one part changed.
func altered(t *testing.T, address string, change func(*url.URL)) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	change(u)
	return u.String()
}

// hostOf is the host and port of an address.
func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// closedPort is an address at which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestInspectTellsWhyThereIsNoConnection(t *testing.T) {
	t.Parallel()
	in := newInspected(t)
	closed := closedPort(t)
	role := strings.Trim(in.role, `"`)
	cases := []struct {
		name   string
		change func(*store.Config)
		want   finding
	}{
		{"nothing listens", func(c *store.Config) {
			c.URL = altered(t, c.URL, func(u *url.URL) { u.Host = closed })
		}, fault("database", "no connection to "+closed, "host and port in RELAY_DATABASE_URL")},
		{"two hosts", func(c *store.Config) {
			c.URL = altered(t, c.URL, func(u *url.URL) { u.Host = closed + "," + closed })
		}, fault("database", "no connection to "+closed, "one must accept writes")},
		{"no such host", func(c *store.Config) {
			c.URL = altered(t, c.URL, func(u *url.URL) { u.Host = "database.invalid:5432" })
		}, fault("database", "no connection to database.invalid:5432", "correct the host in RELAY_DATABASE_URL")},
		{"no such database", func(c *store.Config) {
			c.URL = altered(t, c.URL, func(u *url.URL) { u.Path = "/other" })
		}, fault("database", `database "other", as "`+role+`"`, "correct the database's name in RELAY_DATABASE_URL")},
		{"no such role", func(c *store.Config) {
			c.URL = altered(t, c.URL, func(u *url.URL) { u.User = url.UserPassword("nobody-at-all", "hush") })
		}, fault("database", `as "nobody-at-all"`, "the user in RELAY_DATABASE_URL")},
		{"unreadable credentials", func(c *store.Config) {
			c.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return errors.New("no file /run/password") }
		}, fault("database", "no file /run/password", "RELAY_DATABASE_PASSWORD_FILE")},
		{"nobody answers at one of two addresses", func(c *store.Config) {
			c.URL = altered(t, c.URL, func(u *url.URL) { u.Host, u.Path = closed+","+u.Host, "/other" })
		}, fault("database", `as "`+role+`": `+hostOf(t, in.url), "correct the database's name in RELAY_DATABASE_URL")},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := in.inspect(t, c.change)
			wantFindings(t, got, c.want)
			secret, _ := url.Parse(in.url)
			password, _ := secret.User.Password()
			if all := describe(got); strings.Contains(all, password) || strings.Contains(all, "hush") {
				t.Errorf("a password is shown: %s", all)
			}
		})
	}
}

func TestInspectTellsOfRevokedConnections(t *testing.T) {
	t.Parallel()
	in := newInspected(t)
	in.change(t, `do $$ begin execute format('revoke connect on database %I from public', current_database()); end $$`)
	wantFindings(t, in.inspect(t, nil), fault("database", "permission denied", "grant connect on database"))
}

// A server of the test's own, because the shared one trusts everybody and accepts writes.
func TestInspectOfPasswordsAndStandby(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	if err := migrations.StandaloneSchema(t.Context(), server.URL("postgres"), "public"); err != nil {
		t.Fatal(err)
	}
	prepare(t, server)
	inspect := func(password, query string, scopes ...envelope.Scope) []finding {
		t.Helper()
		address := altered(t, server.URL("postgres"), func(u *url.URL) { u.User, u.RawQuery = url.UserPassword("relay", password), query })
		s, err := store.Open(store.Config{URL: address, Schema: "public", PasswordFrom: "RELAY_DATABASE_PASSWORD_FILE"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var all []finding
		for _, f := range notOK(s.Inspect(t.Context(), "orders", scopes)) {
			if strings.Contains(f.Seen+f.Do, password) {
				t.Errorf("the password is shown: %s -> %s", f.Seen, f.Do)
			}
			all = append(all, finding{f.Level, f.Check, f.Seen, f.Do})
		}
		return all
	}
	if got := inspect("right-one", "sslmode=disable", envelope.NonTenant()); got != nil {
		t.Errorf("with the right password: %+v", got)
	}
	got := inspect("wrong-one", "sslmode=prefer")
	if len(got) != 1 || got[0].check != "database" || !strings.Contains(got[0].do, "the password came from RELAY_DATABASE_PASSWORD_FILE") ||
		!strings.Contains(got[0].seen, "password authentication failed") || strings.Contains(got[0].seen, "TLS") {
		t.Errorf("with a wrong password: %+v", got)
	}

	write(t, server, "standby.signal", "")
	restart(t, server)
	got = inspect("right-one", "sslmode=disable", envelope.NonTenant())
	if len(got) != 1 || got[0].check != "writable" || !strings.Contains(got[0].seen, "standby") {
		t.Errorf("on a standby: %+v", got)
	}
	got = inspect("right-one", "sslmode=prefer")
	if len(got) != 1 || !strings.Contains(got[0].seen, "read only") || strings.Contains(got[0].seen, "TLS") {
		t.Errorf("on a standby, asked with TLS first: %+v", got)
	}
}

// prepare makes a role that has to give its password.
func prepare(t *testing.T, server *pgserver.Server) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `create role relay login password 'right-one'`); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Run(t.Context(), conn, migrations.Options{GrantTo: "relay"}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `checkpoint`); err != nil { // such a server may lose its last commits
		t.Fatal(err)
	}
	write(t, server, "pg_hba.conf", "host all relay all scram-sha-256\nhost all all all trust\n")
	restart(t, server)
}

func restart(t *testing.T, server *pgserver.Server) {
	t.Helper()
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, server *pgserver.Server, name, text string) {
	t.Helper()
	path := filepath.Join(server.Dir(), "data", name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
