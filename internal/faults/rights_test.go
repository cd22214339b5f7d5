package faults_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/relayproc"
)

// secured is how a relay reaches a broker with TLS and a login, by files.
func secured(t *testing.T, ca string, user kafkatest.User) (env map[string]string, password string) {
	t.Helper()
	password = filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(user.Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"RELAY_KAFKA_TLS": "true", "RELAY_KAFKA_TLS_CA_FILE": ca, "RELAY_KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
		"RELAY_KAFKA_SASL_USERNAME": user.Name, "RELAY_KAFKA_SASL_PASSWORD_FILE": password, "RELAY_HTTP_DETAILS": "true",
	}, password
}

// transitions are a relay's rights on its topic.
func transitions(topic string) *kadm.ACLBuilder {
	return kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral).
		Operations(kadm.OpWrite, kadm.OpDescribe, kadm.OpDescribeConfigs)
}

// With exactly the rights that docs/security.md lists a relay works, on a broker that allows nothing else. Each of them is
// taken away and given back under load: the relay says which one is missing, claims nothing meanwhile, and goes on by itself.
func TestKafkaRightsAreTakenAway(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Secure(t)
	user := broker.User(t)
	s := &scene{Fixture: relayproc.New(t, relayproc.Standalone, broker.Broker), acme: relayproc.Tenant(t, "acme")}
	rights := func(operations ...kadm.ACLOperation) *kadm.ACLBuilder {
		return kadm.NewACLs().Topics(s.Topic).ResourcePatternType(kadm.ACLPatternLiteral).Operations(operations...)
	}
	env, _ := secured(t, broker.CAFile(t), user)
	broker.Allow(t, user, transitions(s.Topic))
	if out, _, status := relayproc.Command(t, s.Env("acme", env), "check"); status != 0 || strings.Contains(out, "fail ") {
		t.Errorf("with the documented rights check has status %d:\n%s", status, out)
	}
	stop := s.startLoad()
	s.run(env, quickRetry)
	s.progress(100)

	for i, missing := range []struct {
		taken []kadm.ACLOperation
		named string
	}{
		{[]kadm.ACLOperation{kadm.OpWrite}, "grant WRITE on it"},
		{[]kadm.ACLOperation{kadm.OpDescribeConfigs}, "grant DESCRIBE_CONFIGS on it"},
		{[]kadm.ACLOperation{kadm.OpDescribe, kadm.OpWrite}, "grant DESCRIBE, WRITE on it"},
	} {
		broker.Revoke(t, user, rights(missing.taken...))
		s.unready(missing.named)
		s.nothingIsClaimed()
		if i == 0 { // the others may fall into the same minute, of which the log has one line
			s.says(s.relay, missing.named)
		}
		broker.Allow(t, user, rights(missing.taken...))
		s.ready()
		s.recovered()
	}
	// WRITE brings DESCRIBE with it.
	broker.Revoke(t, user, rights(kadm.OpDescribe))
	if out, _, status := relayproc.Command(t, s.Env("acme", env), "check"); status != 0 {
		t.Errorf("without DESCRIBE check has status %d:\n%s", status, out)
	}
	s.progress(100)

	stop()
	s.deliveredInOrder()
}

// nothingIsClaimed fails unless an event is due for two seconds without being claimed, though the relay usually takes it at
// once. The claim that each worker had under way may take one that is written just then.
func (s *scene) nothingIsClaimed() {
	s.T.Helper()
	for underWay := workers; s.claimsAnEvent(); underWay-- {
		if underWay == 0 {
			s.T.Fatal("events are claimed that can't be sent")
		}
	}
	if status, _ := s.relay.Get("/readyz"); status != http.StatusServiceUnavailable {
		s.T.Errorf("/readyz: status %d, want 503", status)
	}
}

// claimsAnEvent writes an event, and tells whether it is claimed within two seconds.
func (s *scene) claimsAnEvent() (claimed bool) {
	s.T.Helper()
	operation, err := relayproc.App.Admit(s.T.Context(), s.Pool, s.acme)
	if err != nil {
		s.T.Fatal(err)
	}
	relayproc.Until(s.T, "an event to be due for a while", func() error {
		claimed = s.CountRows("operation_id = $1 and (export_attempts > 0 or claimed_by is not null)", operation) > 0
		if !claimed && s.CountRows("operation_id = $1 and next_attempt_at < clock_timestamp() - interval '2 s'", operation) == 0 {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	return claimed
}

// verify and tail read the topic, and need READ for that. No right on a group: they are members of none.
func TestReadingNeedsRead(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Secure(t)
	user := broker.User(t)
	s := &scene{Fixture: relayproc.New(t, relayproc.Standalone, broker.Broker), acme: relayproc.Tenant(t, "acme")}
	env, _ := secured(t, broker.CAFile(t), user)
	broker.Allow(t, user, transitions(s.Topic))
	s.Fill(s.acme, 2, 1)
	s.run(env)
	s.Drained("true")
	reading := [][]string{{"verify"}, {"tail", "--from-beginning", "--max", "2"}}
	for _, args := range reading {
		if _, stderr, status := relayproc.Command(t, s.Env("acme", env), args...); status != 1 || !strings.Contains(stderr, "TOPIC_AUTHORIZATION_FAILED") {
			t.Errorf("relay %v without READ: status %d, %s", args, status, stderr)
		}
	}
	broker.Allow(t, user, kadm.NewACLs().Topics(s.Topic).ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpRead))
	for _, args := range reading {
		if stdout, stderr, status := relayproc.Command(t, s.Env("acme", env), args...); status != 0 || stdout == "" {
			t.Errorf("relay %v with READ: status %d, %s%s", args, status, stdout, stderr)
		}
	}
	s.deliveredOnce()
}

// The same for the database: each grant of docs/security.md is revoked under load, and given back.
func TestDatabaseRightsAreTakenAway(t *testing.T) {
	t.Parallel()
	const outbox = "aksara_operation_outbox"
	s := newScene(t)
	s.DB.Exec(t, "revoke all on schema public from public")
	s.Grant()
	role := pgtest.User(t, s.Role)
	stop := s.startLoad()
	s.run(map[string]string{"RELAY_HTTP_DETAILS": "true"})
	s.progress(50)
	for _, missing := range []struct{ right, named string }{
		{"usage on schema public", `grant usage on schema "public"`},
		{"select on " + outbox, `grant select on "public"."` + outbox + `"`},
		{"update (claimed_by) on " + outbox, `grant update (claimed_by) on`},
		{"update (claim_expires_at) on " + outbox, `grant update (claim_expires_at) on`},
		{"update (export_attempts) on " + outbox, `grant update (export_attempts) on`},
		{"update (exported_at) on " + outbox, `grant update (exported_at) on`},
		{"update (last_error) on " + outbox, `grant update (last_error) on`},
		{"update (next_attempt_at) on " + outbox, `grant update (next_attempt_at) on`},
		{"select (id) on aksara_operations", `grant select (id) on`},
		{"select (application_namespace) on aksara_operations", `grant select (application_namespace) on`},
	} {
		s.DB.Exec(t, "revoke "+missing.right+" from "+role)
		s.unready(missing.named)
		s.DB.Exec(t, "grant "+missing.right+" to "+role)
		s.ready()
		s.recovered()
		if !strings.Contains(s.relay.Log.String(), strings.ReplaceAll(missing.named, `"`, `\"`)) {
			t.Errorf("the log does not name %s", missing.right)
		}
	}
	stop()
	s.deliveredInOrder()
}

// A topic of dead letters needs the same rights. Without them events go on, and one that can't be sent waits for its letter.
func TestDeadLettersNeedRights(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Secure(t)
	user := broker.User(t)
	s := &scene{Fixture: relayproc.New(t, relayproc.Standalone, broker.Broker), acme: relayproc.Tenant(t, "acme")}
	letters := broker.Topic(t, 1, nil)
	env, _ := secured(t, broker.CAFile(t), user)
	env["RELAY_ROW_FAULTS"], env["RELAY_DEAD_LETTER_TOPIC"] = "dead-letter", letters
	broker.Allow(t, user, transitions(s.Topic))
	s.Fill(s.acme, 10, 1)
	s.DB.Exec(t, "update aksara_operation_outbox set payload = '[]' where id = (select min(id) from aksara_operation_outbox)")
	if out, _, status := relayproc.Command(t, s.Env("acme", env), "check"); status != 3 || !strings.Contains(out, "grant DESCRIBE, WRITE, DESCRIBE_CONFIGS on it") {
		t.Errorf("check without rights on the letters has status %d:\n%s", status, out)
	}
	s.run(env, quickRetry)
	s.Drained("payload <> '[]'")
	relayproc.Until(t, "the log to name the right", func() error {
		if log := s.relay.Log.String(); !strings.Contains(log, "grant DESCRIBE, WRITE, DESCRIBE_CONFIGS on it") {
			return fmt.Errorf("it does not")
		}
		return nil
	})
	if n := s.CountRows("payload = '[]' and (exported_at is not null or next_attempt_at = 'infinity')"); n > 0 {
		t.Error("the event that can't be sent is exported or parked without its letter")
	}
	broker.Allow(t, user, transitions(letters))
	s.Drained("true")
	if n := len(broker.All(t, letters)); n != 1 {
		t.Errorf("%d letters came, want 1", n)
	}
}
