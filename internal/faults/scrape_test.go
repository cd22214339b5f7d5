package faults_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"outboxrelay/internal/relayproc"
)

// However many rows wait, Prometheus has its figures at once: nothing is counted for a scrape. No tenant is named in them.
func TestScrapeWithManyRows(t *testing.T) {
	t.Parallel()
	const most = 50 * time.Millisecond
	s := newScene(t)
	s.Fill(s.acme, size(10_000, 1_000_000), 5)
	s.run(map[string]string{"RELAY_KAFKA_TOPIC": s.Topic + ".missing"}) // so that they wait on
	relayproc.Until(t, "the backlog to be counted", func() error {
		if _, body := s.relay.Get("/metrics"); !strings.Contains(body, "\nrelay_pending_events 10000\n") {
			return fmt.Errorf("it is not in %s", body)
		}
		return nil
	})
	var took []time.Duration
	for range 50 {
		begin := time.Now()
		_, body := s.relay.Get("/metrics")
		took = append(took, time.Since(begin))
		if strings.Contains(body, "acme") {
			t.Fatalf("a tenant is named in %s", body)
		}
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
