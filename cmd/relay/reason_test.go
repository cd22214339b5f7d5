package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kfake"

	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/pgtest"
)

// Each command that connects says of a refused password what check says: why, without what the driver tried before, in one line,
// and where the password came from.
func TestRefusedPasswordsAreToldByEachCommand(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	topic := kafkatest.Name("events")
	broker := kafkatest.Fake(t, kfake.SeedTopics(1, topic))
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rules := filepath.Join(server.Dir(), "data", "pg_hba.conf")
	if err := os.WriteFile(rules, []byte("host all relay all scram-sha-256\nhost all all all trust\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `create role relay login password 'right-one'`); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `select pg_reload_conf()`); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	u.User, u.RawQuery = url.User("relay"), ""
	env := variables(u.String(), broker.Addrs, topic)
	env["RELAY_DATABASE_PASSWORD_FILE"] = filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(env["RELAY_DATABASE_PASSWORD_FILE"], []byte("wrong-one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"status", "migrate", "parked list", "once --tenant acme", "verify", "check"} {
		eventually(t, func() error { // the server rereads its rules in its own time
			_, out, errs := runCommand(t, env, strings.Fields(args)...)
			all := out + errs
			if strings.Contains(all, "wrong-one") {
				t.Fatalf("relay %s shows the password: %s", args, all)
			}
			if !strings.Contains(all, "password authentication failed") {
				return fmt.Errorf("relay %s: %s", args, all)
			}
			lines := strings.Count(strings.TrimSpace(errs), "\n") + 1
			if lines != 1 || strings.Contains(all, "TLS") || !strings.Contains(all, "-> the password came from RELAY_DATABASE_PASSWORD_FILE") {
				t.Fatalf("relay %s: %s", args, all)
			}
			return nil
		})
	}
}
