package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/sample"
	"outboxrelay/migrations"
)

const namespace = "orders"

// stage is a database and a broker, and the variables with which a relay works there.
type stage struct {
	db     *pgtest.DB
	role   string // quoted
	broker *kafkatest.Faked
	topic  string
	env    map[string]string
}

// newStage is all that a relay of tenant acme needs, with the smallest privileges.
func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{topic: kafkatest.Name("events")}
	s.broker = kafkatest.Fake(t, kfake.SeedTopics(1, s.topic))
	s.db = pgtest.Database(t, pgtest.Setup{Name: "stage", Apply: func(ctx context.Context, url string) error {
		return migrations.StandaloneSchema(ctx, url, "public")
	}})
	address := s.db.Role(t, "relay", "")
	s.role = pgtest.User(t, address)
	s.grant(t)
	s.env = variables(address, s.broker.Addrs, s.topic)
	return s
}

// variables are the smallest configuration.
func variables(database string, brokers []string, topic string) map[string]string {
	return map[string]string{
		"RELAY_DATABASE_URL":              database,
		"RELAY_NAMESPACE":                 namespace,
		"RELAY_TENANTS":                   "acme",
		"RELAY_KAFKA_BROKERS":             strings.Join(brokers, ","),
		"RELAY_KAFKA_TOPIC":               topic,
		"RELAY_KAFKA_MIN_INSYNC_REPLICAS": "1",
		"RELAY_HTTP_ADDRESS":              "off",
		"RELAY_LOG_FORMAT":                "json",
	}
}

// grant gives the role what it lacks, and makes tables that are missing.
func (s *stage) grant(t *testing.T) {
	t.Helper()
	options := migrations.Options{Standalone: true, GrantTo: strings.Trim(s.role, `"`)}
	if err := migrations.Run(t.Context(), s.db.Conn(t), options); err != nil {
		t.Fatal(err)
	}
}

// change runs statements that name the role as ROLE.
func (s *stage) change(t *testing.T, statements string) {
	t.Helper()
	s.db.Exec(t, strings.ReplaceAll(statements, "ROLE", s.role))
}

// fill writes three events of tenant acme.
func (s *stage) fill(t *testing.T, namespace string) {
	t.Helper()
	acme, err := envelope.Tenant("acme")
	if err != nil {
		t.Fatal(err)
	}
	if err := (sample.Application{Namespace: namespace}).Fill(t.Context(), s.db.Pool(t), acme, 1, 3); err != nil {
		t.Fatal(err)
	}
}

// environ is a set of variables as a process gets it.
func environ(variables map[string]string) (all []string) {
	for name, value := range variables {
		all = append(all, name+"="+value)
	}
	return all
}

// runCommand runs one command line in this process.
func runCommand(t *testing.T, variables map[string]string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app{environ: environ(variables), hostname: "host", stdout: &out, stderr: &errs}
	status = a.run(t.Context(), args)
	return status, out.String(), errs.String()
}

func TestCheckOfWhatWorks(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.fill(t, namespace)
	status, out, errs := runCommand(t, s.env, "check")
	if status != statusDone || errs != "" {
		t.Fatalf("status %d, %s%s", status, out, errs)
	}
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "ok    ") || strings.Contains(line, " -> ") {
			t.Errorf("line %q, want all ok", line)
		}
	}
	for _, part := range []string{`tenant "acme": 3 due, 0 in flight, 0 delayed, 0 parked`, "PostgreSQL", "1 broker answers", "has 1 partition\n", "has 1 replica and"} {
		if !strings.Contains(out, part) {
			t.Errorf("nothing is said of %q:\n%s", part, out)
		}
	}
}

func TestCheckWarnsOfAWrongNamespace(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.fill(t, "Orders")
	status, out, _ := runCommand(t, s.env, "check")
	want := `warn  waiting events: tenant "acme": nothing waits in namespace "orders", but events wait in "Orders" -> `
	if status != statusDone || !strings.Contains(out, want) {
		t.Errorf("status %d, want %s in\n%s", status, want, out)
	}
}

// Database and broker are both looked at, whichever of them fails.
func TestCheckFindsFaultsOnBothSides(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.change(t, `revoke update (exported_at) on public.aksara_operation_outbox from ROLE`)
	s.env["RELAY_KAFKA_TOPIC"] = "no-such-topic"
	status, out, _ := runCommand(t, s.env, "check", "--json")
	if status != statusFault {
		t.Errorf("status %d, want %d", status, statusFault)
	}
	var answer checkAnswer
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	failed := map[string]string{}
	for _, c := range answer.Checks {
		if c.Level == "fail" {
			failed[c.Check] = c.Do
		}
	}
	if answer.Result != "fail" || len(failed) != 2 || !strings.Contains(failed["privileges"], "grant update (exported_at)") || failed["topic"] == "" {
		t.Errorf("answer %s", out)
	}
}

func TestCheckWithoutServers(t *testing.T) {
	t.Parallel()
	env := variables("postgres://relay:hush@127.0.0.1:1/app", []string{"127.0.0.1:1"}, "events")
	status, out, errs := runCommand(t, env, "check")
	if status != statusFault || errs != "" {
		t.Errorf("status %d, %s", status, errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "fail  database: ") || !strings.HasPrefix(lines[1], "fail  brokers: ") {
		t.Errorf("printed\n%s", out)
	}
	if strings.Contains(out, "hush") {
		t.Errorf("a password is shown:\n%s", out)
	}
}

func TestCheckQuotesWhatIsNotPrintable(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	u, err := url.Parse(s.env["RELAY_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/app\x1b[2J"
	s.env["RELAY_DATABASE_URL"] = u.String()
	status, out, _ := runCommand(t, s.env, "check")
	if status != statusFault || strings.Contains(out, "\x1b") || strings.Count(out, "\n") < 2 {
		t.Errorf("status %d, printed %q", status, out)
	}
}

func TestCheckOfABadConfiguration(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
	}{
		"nothing set":  {[]string{"check"}, nil},
		"unknown flag": {[]string{"check", "--yaml"}, variables("", []string{"127.0.0.1:1"}, "events")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if status, out, errs := runCommand(t, c.env, c.args...); status != statusUsage || out != "" || errs == "" {
				t.Errorf("status %d, printed %q, %q", status, out, errs)
			}
		})
	}
}
