package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"outboxrelay/internal/relayproc"
)

// Events that can't be sent as they are go to the dead-letter topic, everything else of
// their operations to its own, and nothing is left parked. Aksara's prune then finds
// only exported rows.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	f := newFixture(t, relayproc.Standalone)
	f.Topic = f.Broker.Topic(t, 3, map[string]string{"max.message.bytes": "20000"})
	letters := f.Broker.Topic(t, 1, map[string]string{"max.message.bytes": "20000"})
	f.Fill(relayproc.Tenant(t, "acme"), 20, 3)
	operations := f.operations()
	tooLarge, noObject := operations[3], operations[7]
	f.DB.Exec(t, `update aksara_operation_outbox set payload = payload || jsonb_build_object('more', repeat(md5(id::text), 1000))
		where operation_id = $1 and (payload->>'state_version')::int = 1`, tooLarge)
	f.DB.Exec(t, `update aksara_operation_outbox set payload = '["PAYLOAD-TEXT"]'
		where operation_id = $1 and (payload->>'state_version')::int = 3`, noObject)

	p := relayproc.Start(t, f.Env("acme", map[string]string{"RELAY_ROW_FAULTS": "dead-letter", "RELAY_DEAD_LETTER_TOPIC": letters}))
	f.Drained("true")
	got := map[string]string{}
	for _, r := range f.Broker.All(t, letters) {
		headers := map[string]string{}
		for _, h := range r.Headers {
			headers[h.Key] = string(h.Value)
		}
		got[string(r.Key)] = fmt.Sprintf("%s|%s|%s|%t|%s", headers["ce_tenant"], headers["relay_topic"], headers["relay_attempts"], r.Value == nil, r.Value)
		if headers["relay_error"] == "" {
			t.Errorf("a letter gives no reason: %q", headers)
		}
	}
	want := map[string]string{
		tooLarge: "acme|" + f.Topic + "|1|true|",
		noObject: "acme|" + f.Topic + `|1|false|["PAYLOAD-TEXT"]`,
	}
	for operation := range want {
		if got[operation] != want[operation] {
			t.Errorf("letter of operation %s: %q, want %q", operation, got[operation], want[operation])
		}
	}
	if len(got) != 2 {
		t.Errorf("%d letters, want 2", len(got))
	}
	if n := f.CountRows("last_error like 'dead-lettered: %' and claimed_by is null and claim_expires_at is null"); n != 2 {
		t.Errorf("%d rows say that they were dead-lettered, want 2", n)
	}
	if n := len(f.Records()); n != 58 {
		t.Errorf("the events' topic has %d records, want 58", n)
	}
	relayproc.Until(t, "the metric", func() error {
		if _, body := p.Get("/metrics"); !strings.Contains(body, `relay_events_total{outcome="dead_lettered"} 2`) {
			return fmt.Errorf("it does not count them")
		}
		return nil
	})
	if strings.Contains(p.Log.String(), "PAYLOAD-TEXT") {
		t.Error("a payload stands in the log")
	}
}
