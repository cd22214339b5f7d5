package docstest

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// From nothing to events, and all else that the page tells to do, so that the events are sent again in the end. Then the topic is
// lost, and what the page says about that brings them back.
func TestOperationsPage(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.run("operations.md")
	s.delivered(4)

	if _, err := s.broker.Admin(t).DeleteTopic(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	s.unready()
	create, _, _ := strings.Cut(s.block("--create --topic"), "kafka-acls.sh")
	s.shell(create)
	if _, err := s.db.Exec(t.Context(), s.block("set exported_at = null")); err != nil {
		t.Fatal(err)
	}
	s.delivered(2)
	s.shell("relay verify")
}

// block is the sample of the page for operators that holds a text.
func (s *scene) block(part string) string {
	s.t.Helper()
	for _, b := range s.blocks("operations.md") {
		if strings.Contains(b.text, part) {
			return b.text
		}
	}
	s.t.Fatalf("the page has no sample with %q", part)
	return ""
}

// With exactly the rights of the page a relay works, also where the supporting index is missing, and can do nothing else.
func TestSecurityPage(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if _, err := s.db.Exec(t.Context(), "drop index relay_outbox_operation"); err != nil {
		t.Fatal(err)
	}
	s.broker.CreateTopic(t, topic, 1, nil)
	for _, b := range s.blocks("operations.md") {
		if b.language == "env" {
			s.env = append(s.env, strings.Fields(b.text)...)
		}
	}
	s.run("security.md")
	for line := range strings.Lines(s.shell("relay check")) {
		if !strings.HasPrefix(line, "ok ") && !strings.Contains(line, "relay_outbox_operation is missing") {
			t.Errorf("check: %s", line)
		}
	}
	s.startRelay()
	s.delivered(2)
	s.shell("relay verify && relay tail --from-beginning --max 2")

	for _, statement := range []string{
		"update aksara_operation_outbox set payload = '{}'", "delete from aksara_operation_outbox",
		"insert into aksara_operation_outbox (topic) values ('t')", "update aksara_operations set state = 'failed'",
		"select reason_code from aksara_operation_transitions", "create table t ()",
	} {
		_, err := s.db.Exec(t.Context(), "set role relay; "+statement)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "42501" {
			t.Errorf("the relay's role may %s: %v", statement, err)
		}
	}
}
