package store_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/pgtest"
	"outboxrelay/migrations"
	"outboxrelay/store"
)

// Of several hosts one is away, one has no such name, one takes no writes, as after a failover: the one that does is found.
func TestWritableHostIsFound(t *testing.T) {
	t.Parallel()
	demoted, primary := pgtest.Server(t, "default_transaction_read_only=on"), pgtest.Server(t)
	admin, err := pgx.Connect(t.Context(), primary.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(t.Context())
	if err := migrations.StandaloneSchema(t.Context(), primary.URL("postgres"), "public"); err != nil {
		t.Fatal(err)
	}
	scope := tenant(t, "acme")
	if err := app.Fill(t.Context(), admin, scope, 3, 1); err != nil {
		t.Fatal(err)
	}
	address := altered(t, primary.URL("postgres"), func(u *url.URL) {
		other, err := url.Parse(demoted.URL("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		u.Host = strings.Join([]string{closedPort(t), "database.invalid:5432", other.Host, u.Host}, ",")
	})
	s, err := store.Open(store.Config{URL: address, Schema: "public"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if claim, err := s.Claim(t.Context(), request(scope)); err != nil || len(claim.Rows) != 3 {
		t.Errorf("claimed %d rows, %v, want 3", len(claim.Rows), err)
	}
}
