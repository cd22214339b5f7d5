package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// exported is a stage with three events that were exported.
func exported(t *testing.T) *stage {
	t.Helper()
	s := newStage(t)
	s.fill(t, namespace)
	if status, out, errs := runCommand(t, s.env, "once", "--tenant", "acme", "--max", "3"); status != statusDone {
		t.Fatalf("once: status %d, %s%s", status, out, errs)
	}
	return s
}

func TestVerifyOfWhatIsWell(t *testing.T) {
	t.Parallel()
	s := exported(t)
	status, out, errs := runCommand(t, s.env, "verify")
	if status != statusDone || errs != "" || out != "ok     compared 3 rows with 3 records\n" {
		t.Errorf("status %d, printed\n%s%s", status, out, errs)
	}
	status, out, _ = runCommand(t, s.env, "verify", "--json")
	if status != statusDone || out != `{"result":"ok","rows":3,"records":3,"passes":1,"findings":[]}`+"\n" {
		t.Errorf("status %d, printed %s", status, out)
	}
}

func TestVerifyFindsFaults(t *testing.T) {
	t.Parallel()
	s := exported(t)
	client := s.broker.Client(t)
	first := s.broker.Consume(t, s.topic, 1)[0]
	for _, r := range []*kgo.Record{
		{Topic: s.topic, Key: first.Key, Value: first.Value, Headers: first.Headers},
		{Topic: s.topic, Key: []byte("\x1b[2J"), Value: []byte("secret")},
	} {
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	s.fill(t, namespace)
	s.db.Exec(t, `update aksara_operation_outbox set exported_at = clock_timestamp() where exported_at is null and payload->>'state_version' = '1'`)

	status, out, _ := runCommand(t, s.env, "verify")
	if status != statusFault || strings.Contains(out, "secret") || strings.Contains(out, "\x1b") {
		t.Errorf("status %d, printed\n%s", status, out)
	}
	for _, part := range []string{
		"fault  compared 6 rows with 5 records\n",
		"fault  lost: 1 events are marked exported but not in the topic\n         event ",
		`:1 of tenant "acme" in row 4: exported at `,
		"fault  malformed: 1 ", "\n         at offset 4 of " + s.topic + "/0: header ce_envelope is not 1",
		"warn   duplicated: 1 ", "info   waiting: 2 ",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("nothing is said of %q:\n%s", part, out)
		}
	}

	status, out, _ = runCommand(t, s.env, "verify", "--json")
	var answer verifyAnswer
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	lost := answer.Findings[0]
	if status != statusFault || answer.Result != "fault" || lost.Kind != "lost" || lost.Level != "fault" || lost.Count != 1 {
		t.Errorf("status %d, printed %s", status, out)
	}
	if e := lost.Examples[0]; e.Row != 4 || e.Tenant == nil || *e.Tenant != "acme" || !strings.HasSuffix(e.Event, ":1") || e.Record != nil {
		t.Errorf("lost is %+v", e)
	}
}

func TestVerifyThatCannot(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.env["RELAY_KAFKA_TOPIC"] = "no-such-topic"
	status, out, errs := runCommand(t, s.env, "verify")
	if status != statusError || out != "" || !strings.Contains(errs, `topic "no-such-topic"`) {
		t.Errorf("status %d, printed %q, %q", status, out, errs)
	}
	if status, _, _ := runCommand(t, s.env, "verify", "topic"); status != statusUsage {
		t.Errorf("status %d", status)
	}
}
