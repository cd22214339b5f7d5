package faults_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"outboxrelay/internal/relayproc"
)

// However many rows wait, Prometheus has its figures at once: nothing is counted for a scrape, which is answered also while
// nobody may read the table. No tenant is named in the figures.
func TestScrapeWithManyRows(t *testing.T) {
	t.Parallel()
	most := time.Second // less than a call to the database may take; how fast it is, is asked of a lengthy test, which runs alone
	if *lengthy {
		most = 50 * time.Millisecond
	}
	s := newScene(t)
	s.Fill(s.acme, size(10_000, 1_000_000), 5)
	s.run(map[string]string{"RELAY_KAFKA_TOPIC": s.Topic + ".missing"}) // so that they wait on
	const counted = "\nrelay_pending_events 10000\n"
	relayproc.Until(t, "the backlog to be counted", func() error {
		if _, body := s.relay.Get("/metrics"); !strings.Contains(body, counted) {
			return fmt.Errorf("it is not in %s", body)
		}
		return nil
	})
	lock, err := s.Pool.Begin(t.Context())
	if err == nil {
		_, err = lock.Exec(t.Context(), "lock table aksara_operation_outbox in access exclusive mode")
	}
	if err != nil {
		t.Fatal(err)
	}
	var took []time.Duration
	for range 50 {
		begin := time.Now()
		_, body := s.relay.Get("/metrics")
		took = append(took, time.Since(begin))
		if strings.Contains(body, "acme") {
			t.Fatalf("a tenant is named in %s", body)
		}
		if !strings.Contains(body, counted) {
			t.Fatalf("the backlog is not in %s", body)
		}
	}
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(took)
	t.Logf("of %d rows: half of the scrapes took less than %s, all less than %s", s.CountRows("true"), took[len(took)/2], took[len(took)-1])
	if median := took[len(took)/2]; median > most {
		t.Errorf("half of the scrapes took more than %s, want %s at most", median, most)
	}
	if n := s.CountRows("export_attempts > 0"); n > 0 {
		t.Errorf("%d rows were claimed, although their topic is missing", n)
	}
}
