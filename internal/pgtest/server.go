package pgtest

import (
	"context"
	"testing"

	"outboxrelay/internal/pgserver"
)

// Server starts a server for this test alone, which may restart and kill it. Settings are PostgreSQL's, each name=value. It
// always runs this machine's own programs. To fill a database of it call a Setup's Apply with server.URL("postgres").
func Server(t testing.TB, settings ...string) *pgserver.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	server, err := pgserver.Start(ctx, pgserver.Options{Settings: settings, Download: true})
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return server
}
