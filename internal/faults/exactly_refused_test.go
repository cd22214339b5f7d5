package faults_test

import (
	"fmt"
	"strings"
	"testing"

	"outboxrelay/internal/relayproc"
)

// A trigger discards the marks of one tenant, without an error. What was delivered is not taken for settled: when the claim has run
// out, and others were committed meanwhile, nothing comes a second time. The slot stands still, says why, and goes on by itself.
func TestExactlyOnceMarksAreDiscarded(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.DB.Exec(t, `create function swallow() returns trigger language plpgsql as $$ begin return null; end $$;
		create trigger swallow before update on aksara_operation_outbox for each row
			when (old.tenant_scope = 'acme' and old.exported_at is null and new.exported_at is not null) execute function swallow()`)
	s.Fill(s.acme, 5, 1)
	globex := relayproc.Tenant(t, "globex")
	s.Fill(globex, 5, 1)
	s.relay = relayproc.Start(t, s.Env("acme,globex", s.exactly(), shortLease, map[string]string{"RELAY_WORKERS": "2"}))
	s.says(s.relay, "5 rows were marked exported, and are not")
	s.Fill(globex, 5, 1)
	s.Drained("tenant_scope = 'globex'")
	relayproc.Until(t, "the claim to run out", func() error {
		return unequal(5, s.CountRows("tenant_scope = 'acme' and claim_expires_at < now()"))
	})
	s.Fill(globex, 5, 1)
	s.Drained("tenant_scope = 'globex'")
	s.DB.Exec(t, "drop trigger swallow on aksara_operation_outbox")
	s.Drained("true")
	s.eachOnce(20)
}

// The database refuses to have a tenant's row parked, which has to be done before a transaction can be sent. Others, which were
// claimed of together with it, are delivered all the same, and are not named as what is wrong.
func TestExactlyOnceParkingIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.DB.Exec(t, `create function refuse() returns trigger language plpgsql as $$ begin raise 'the audit failed'; end $$;
		create trigger refuse before update on aksara_operation_outbox for each row
			when (new.next_attempt_at = 'infinity') execute function refuse()`)
	s.Fill(s.acme, 1, 1)
	s.DB.Exec(t, `update aksara_operation_outbox set payload = payload - 'state_version'`)
	tenants := []string{"acme"}
	for i := range 8 {
		tenants = append(tenants, fmt.Sprintf("good-%d", i))
		s.Fill(relayproc.Tenant(t, tenants[i+1]), 3, 1)
	}
	s.relay = relayproc.Start(t, s.Env(strings.Join(tenants, ","), s.exactly(), map[string]string{"RELAY_WORKERS": "1"}))
	s.Drained("tenant_scope <> 'acme'")
	for range 10 {
		s.Fill(relayproc.Tenant(t, "good-1"), 1, 1)
		s.Drained("tenant_scope <> 'acme'")
	}
	s.eachOnce(34)
	s.says(s.relay, "the audit failed")
	for line := range strings.Lines(s.relay.Log.String()) {
		if strings.Contains(line, "the audit failed") && !strings.Contains(line, `"scope":"tenant \"acme\""`) {
			t.Errorf("another is named: %s", line)
		}
	}
	s.DB.Exec(t, "drop trigger refuse on aksara_operation_outbox")
	relayproc.Until(t, "the row to be parked", func() error {
		return unequal(1, s.CountRows("next_attempt_at = 'infinity' and claimed_by is null"))
	})
}
