package faults_test

import (
	"testing"

	"outboxrelay/internal/relayproc"
)

// A transaction that took its ids and times early commits late, after events with higher ones were delivered: its events
// are delivered too.
func TestLateCommit(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	tx, err := s.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := relayproc.App.Fill(t.Context(), tx, s.acme, 100, 3); err != nil {
		t.Fatal(err)
	}
	s.run()
	s.Fill(s.acme, 1000, 3)
	s.Drained("true")
	var lower bool // only the transaction itself sees its rows
	if err := tx.QueryRow(t.Context(), `select max(id) filter (where exported_at is null) < min(id) filter (where exported_at is not null)
		from aksara_operation_outbox`).Scan(&lower); err != nil || !lower {
		t.Fatalf("the late rows have no lower ids: %v", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.recovered()
	s.deliveredOnce()
}
