package e2e_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/internal/relayproc"
)

// Several relays share the rows of several tenants: when nothing fails, each of 100,000
// events comes once and in order.
func TestManyRelaysDeliverEachEventOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, relayproc.Standalone)
	const tenants, operations, versions = 5, 6667, 3
	var names []string
	for i := range tenants {
		name := fmt.Sprintf("tenant-%d", i)
		names = append(names, name)
		f.Fill(relayproc.Tenant(t, name), operations, versions)
	}
	for i := range 4 {
		relayproc.Start(t, f.Env(strings.Join(names, ","), map[string]string{"RELAY_WORKER_ID": fmt.Sprintf("worker-%d", i%2)}))
	}
	f.Drained("true")
	relayproc.ExactlyOnce(t, f.Events(), tenants*operations*versions)
	if n := f.Count("select count(*) from aksara_operation_outbox where claimed_by is not null or claim_expires_at is not null or last_error is not null or export_attempts <> 1"); n > 0 {
		t.Errorf("%d exported rows carry a claim, an error or more than one attempt", n)
	}
}

// The relay crashes between the broker's acknowledgement and the mark: after the lease
// the event comes again, with the same key, headers and bytes.
func TestCrashBeforeTheMark(t *testing.T) {
	t.Parallel()
	f := newFixture(t, relayproc.Standalone)
	acme := relayproc.Tenant(t, "acme")
	if _, err := relayproc.App.Admit(t.Context(), f.Pool, acme); err != nil {
		t.Fatal(err)
	}
	first := relayproc.Start(t, f.Env("acme", quickLease, map[string]string{"RELAY_POLL_INTERVAL": "10ms"}))
	f.Drained("true")

	release := f.HoldMarks()
	var operation [16]byte
	if err := f.Pool.QueryRow(t.Context(), "select operation_id from aksara_operation_outbox").Scan(&operation); err != nil {
		t.Fatal(err)
	}
	if err := relayproc.App.Advance(t.Context(), f.Pool, acme, operation, "claimed", "ready"); err != nil {
		t.Fatal(err)
	}
	f.Broker.Consume(t, f.Topic, 2)
	first.Kill()
	release()
	if n := f.Count("select count(*) from aksara_operation_outbox where exported_at is null and claimed_by like 'e2e/%'"); n != 1 {
		t.Fatalf("%d rows are claimed after the crash, want 1", n)
	}

	relayproc.Start(t, f.Env("acme", quickLease))
	f.Drained("true")
	records := f.Records()
	if len(records) != 3 {
		t.Fatalf("%d records came, want 3: two events and a duplicate", len(records))
	}
	var twice []*kgo.Record
	for _, r := range records {
		if e := relayproc.Event(t, r); e.StateVersion == 2 {
			twice = append(twice, r)
		}
	}
	sameBytes(t, twice[0], twice[1])
	if r := f.rows("id = 2")[0]; r["export_attempts"] != "2" || r["claimed_by"] != "<null>" {
		t.Errorf("after the second delivery: attempts %s, claimed by %s", r["export_attempts"], r["claimed_by"])
	}
}

// sameBytes fails unless two records are one event, byte for byte.
func sameBytes(t *testing.T, a, b *kgo.Record) {
	t.Helper()
	if !bytes.Equal(a.Key, b.Key) || !bytes.Equal(a.Value, b.Value) || a.Partition != b.Partition || len(a.Headers) != len(b.Headers) {
		t.Fatalf("two deliveries differ:\n%v\n%v", a, b)
	}
	for i := range a.Headers {
		if a.Headers[i].Key != b.Headers[i].Key || !bytes.Equal(a.Headers[i].Value, b.Headers[i].Value) {
			t.Errorf("header %d differs: %v, %v", i, a.Headers[i], b.Headers[i])
		}
	}
}

// A relay under load is asked to stop: it ends with status 0 and leaves nothing claimed,
// and no event comes twice after the restart, with the same worker id.
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	f := newFixture(t, relayproc.Standalone)
	acme := relayproc.Tenant(t, "acme")
	f.Fill(acme, 20000, 3)
	for round := range 3 {
		p := relayproc.Start(t, f.Env("acme", map[string]string{"RELAY_BATCH_ROWS": "300"}))
		before := f.Count("select count(*) from aksara_operation_outbox where exported_at is not null")
		relayproc.Until(t, "some events to be exported", func() error {
			if n := f.Count("select count(*) from aksara_operation_outbox where exported_at is not null"); n < before+3000 {
				return fmt.Errorf("%d so far", n)
			}
			return nil
		})
		if status := p.Stop(); status != 0 {
			t.Fatalf("round %d: relay ended with status %d", round, status)
		}
		if n := f.Count("select count(*) from aksara_operation_outbox where claimed_by is not null"); n > 0 {
			t.Fatalf("round %d: %d rows are left claimed", round, n)
		}
	}
	relayproc.Start(t, f.Env("acme"))
	f.Drained("true")
	relayproc.ExactlyOnce(t, f.Events(), 60000)
}
