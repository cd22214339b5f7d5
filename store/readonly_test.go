package store_test

import (
	"context"
	"fmt"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/pgtest"
	"outboxrelay/relay"
	"outboxrelay/store"
)

// A server that stops to take writes, as one does that was demoted, and takes them
// again: the store says so meanwhile, and goes on by itself.
func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			server := pgtest.Server(t)
			address := server.URL("postgres")
			if err := v.setup(t).Apply(t.Context(), address); err != nil {
				t.Fatal(err)
			}
			admin, err := pgx.Connect(t.Context(), address)
			if err != nil {
				t.Fatal(err)
			}
			defer admin.Close(context.Background())
			readOnly(t, admin, "off") // proves that the helper waits for the right thing
			s := openOn(t, admin, address, v)
			scope := tenant(t, "acme")
			if err := app.Fill(t.Context(), admin, scope, 3, 1); err != nil {
				t.Fatal(err)
			}
			one := request(scope)
			one.Rows = 1
			claim, err := s.Claim(t.Context(), one)
			if err != nil {
				t.Fatal(err)
			}
			verdicts := onAll(claim, relay.Verdict{Exported: true})

			readOnly(t, admin, "on")
			for range 3 {
				if _, err := s.Claim(t.Context(), one); code(err) != "25006" {
					t.Errorf("claim: %v, want an error that tells of the read-only server", err)
				}
				if _, err := s.Settle(t.Context(), claim, verdicts); code(err) != "25006" {
					t.Errorf("settle: %v, want an error that tells of the read-only server", err)
				}
			}
			readOnly(t, admin, "off")
			results, err := s.Settle(t.Context(), claim, verdicts)
			if err != nil || results[0].Status != relay.Written {
				t.Errorf("settle after it: %v, %v", results, err)
			}
			if claim, err := s.Claim(t.Context(), one); err != nil || len(claim.Rows) != 1 {
				t.Errorf("claim after it: %d rows, %v", len(claim.Rows), err)
			}
		})
	}
}

// openOn opens a store with the smallest rights on a server of the test's own.
func openOn(t *testing.T, admin *pgx.Conn, address string, v variant) *store.Store {
	t.Helper()
	if _, err := admin.Exec(t.Context(), "create role relay login"); err != nil {
		t.Fatal(err)
	}
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.User("relay")
	grant(t, address, parsed.String())
	if !v.indexed {
		if _, err := admin.Exec(t.Context(), "drop index relay_outbox_operation"); err != nil {
			t.Fatal(err)
		}
	}
	s, err := store.Open(store.Config{URL: parsed.String(), Schema: "public"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// readOnly sets what transactions of all sessions may do by default, and waits until
// the server's processes know.
func readOnly(t *testing.T, admin *pgx.Conn, setting string) {
	t.Helper()
	for _, statement := range []string{"set default_transaction_read_only = off", "alter system set default_transaction_read_only = " + setting, "select pg_reload_conf()"} {
		if _, err := admin.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	config, err := pgx.ParseConfig(admin.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the setting is known", func() error {
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			return err
		}
		defer conn.Close(context.Background())
		var got string
		if err := conn.QueryRow(t.Context(), "show default_transaction_read_only").Scan(&got); err != nil || got != setting {
			return fmt.Errorf("it is %s, %v", got, err)
		}
		return nil
	})
}
