package faults_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"outboxrelay/internal/relayproc"
)

// soon is how long another tenant's single event may take while one tenant has a backlog. On a machine that is too slow for
// that, the backlog may get no more rows meanwhile than the claims that are under way: 4 workers, 1000 rows each.
const (
	soon         = 2 * time.Second
	rowsUnderWay = 4 * 1000
)

var smallTenants = []string{"b", "c", "d", "e", "f"}

// A tenant has a large backlog, whatever the state of it: the single events of others don't wait for it.
func TestBacklogDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	t.Run("draining", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		s.Fill(s.acme, size(20_000, 100_000), 1)
		s.serve(nil)
		s.progress(1)
		s.othersSoon()
		if n := s.CountRows("tenant_scope = 'acme' and exported_at is null"); n == 0 {
			t.Error("the backlog is gone already, so nothing was tested")
		}
	})
	t.Run("topic missing", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		s.Fill(s.acme, size(20_000, 100_000), 1)
		for _, name := range smallTenants {
			s.Broker.CreateTopic(t, s.Topic+"."+name, 1, nil)
		}
		s.serve(map[string]string{"RELAY_KAFKA_TOPIC": s.Topic + ".{tenant}"})
		s.othersSoon()
		if n := s.CountRows("tenant_scope = 'acme' and (export_attempts > 0 or last_error is not null)"); n > 0 {
			t.Errorf("%d rows whose topic is missing were claimed", n)
		}
	})
	t.Run("parked", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		s.Fill(s.acme, size(2000, 10_000), 3)
		s.DB.Exec(t, `update aksara_operation_outbox set payload = '[]' where payload->>'state_version' = '1'`)
		s.serve(nil)
		relayproc.Until(t, "all operations to be parked", func() error {
			if n := s.CountRows("next_attempt_at = 'infinity'"); n != size(2000, 10_000) {
				return fmt.Errorf("%d so far", n)
			}
			return nil
		})
		s.othersSoon()
		if n := s.exported(); n != len(smallTenants) {
			t.Errorf("%d rows are exported, want those of the others only", n)
		}
	})
}

// serve runs a relay for the tenant with the backlog and for the others, and waits until those are served.
func (s *scene) serve(more map[string]string) {
	s.T.Helper()
	s.relay = relayproc.Start(s.T, s.Env("acme,"+strings.Join(smallTenants, ","), more))
	s.ready()
}

// othersSoon writes an event of each small tenant, and fails unless they are exported soon, by the database's clock.
func (s *scene) othersSoon() {
	s.T.Helper()
	for _, name := range smallTenants {
		s.Fill(relayproc.Tenant(s.T, name), 1, 1)
	}
	s.Drained("tenant_scope <> 'acme'")
	var took, passed int64
	if err := s.Pool.QueryRow(s.T.Context(), `
		select (extract(epoch from exported_at - created_at) * 1000)::bigint, (
			select count(*) from aksara_operation_outbox large
			where large.tenant_scope = 'acme' and large.exported_at between small.created_at and small.exported_at)
		from aksara_operation_outbox small where tenant_scope <> 'acme'
		order by 1 desc limit 1`).Scan(&took, &passed); err != nil {
		s.T.Fatal(err)
	}
	s.T.Logf("the slowest took %d ms, and %d rows of the backlog were exported meanwhile", took, passed)
	if took > soon.Milliseconds() && (passed == 0 || passed > rowsUnderWay) {
		s.T.Errorf("an event of another tenant took %d ms, and %d rows of the backlog passed it", took, passed)
	}
}
