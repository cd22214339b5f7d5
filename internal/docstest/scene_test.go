package docstest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/childproc"
	"outboxrelay/internal/javalibs"
	"outboxrelay/internal/kafkaserver"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/pgserver"
	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/relayproc"
	"outboxrelay/migrations"
)

func TestMain(m *testing.M) { os.Exit(relayproc.Main(m)) }

const topic = "aksara.operation.transitions"

// scene is what a page finds: a database with an application's tables, in which roles have to give their passwords; and a
// broker with TLS, logins and an authorizer, where user relay may do nothing yet.
type scene struct {
	t       *testing.T
	db      *pgx.Conn // as superuser
	broker  *kafkatest.Own
	dir     string
	env     []string
	names   *strings.Replacer
	printed string // by the last command
	http    string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, dir: t.TempDir()}
	server := s.startDatabase()
	s.broker = kafkatest.Server(t, kafkaserver.Options{Secure: true})
	credentials := s.broker.Server.Credentials()
	s.broker.SetPassword(t, kafkatest.User{Name: "relay", Password: "s3cret-of-kafka"})
	s.write("database-password", "s3cret-of-the-database\n")
	s.write("kafka-password", "s3cret-of-kafka\n")
	s.write("kafka-ca.pem", credentials.CA)
	s.write("admin.properties", fmt.Sprintf(`security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="%s" password="%s";
ssl.truststore.type=PEM
ssl.truststore.location=%s
`, credentials.Username, credentials.Password, filepath.Join(s.dir, "kafka-ca.pem")))
	ports, err := childproc.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	s.http = childproc.Loopback(ports[0])
	s.commands()
	// There is one broker, so nothing can have more than one replica.
	s.env = append(s.env, "RELAY_KAFKA_MIN_INSYNC_REPLICAS=1", "RELAY_HTTP_ADDRESS="+s.http, "PGPASSWORD=s3cret-of-the-owner")
	s.names = strings.NewReplacer(
		"kafka-1.example:9093", s.broker.Addrs[0], "db.example", fmt.Sprintf("127.0.0.1:%d", server.Port()),
		"/run/secrets/", s.dir+"/", "localhost:8080", s.http,
		"--replication-factor 3", "--replication-factor 1", "min.insync.replicas=2", "min.insync.replicas=1",
	)
	return s
}

// startDatabase makes a database app with tables of its owner's and two events of tenant acme.
func (s *scene) startDatabase() *pgserver.Server {
	t := s.t
	t.Helper()
	server := pgtest.Server(t)
	connect := func(database string) *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), server.URL(database))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	first := connect("postgres")
	for _, statement := range []string{"create role owner login password 's3cret-of-the-owner'", "create database app owner owner"} {
		if _, err := first.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	address := strings.Replace(server.URL("app"), "postgres@", "owner@", 1)
	if err := migrations.StandaloneSchema(t.Context(), address, "public"); err != nil {
		t.Fatal(err)
	}
	hba := filepath.Join(server.Dir(), "data", "pg_hba.conf")
	if err := os.WriteFile(hba, []byte("host all relay,owner all scram-sha-256\nhost all all all trust\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.db = connect("app")
	if _, err := s.db.Exec(t.Context(), "select pg_reload_conf()"); err != nil {
		t.Fatal(err)
	}
	if err := relayproc.App.Fill(t.Context(), s.db, relayproc.Tenant(t, "acme"), 1, 2); err != nil {
		t.Fatal(err)
	}
	return server
}

// commands puts the relay and Kafka's own programs on the path.
func (s *scene) commands() {
	s.t.Helper()
	java, err := javalibs.Java()
	if err != nil {
		s.t.Fatal(err)
	}
	libs, err := kafkaserver.Libs(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	s.program()
	for name, class := range map[string]string{"kafka-topics.sh": "TopicCommand", "kafka-acls.sh": "AclCommand"} {
		s.write(name, fmt.Sprintf("#!/bin/sh\nexec %s -cp '%s' -XX:+UseSerialGC -XX:TieredStopAtLevel=1 org.apache.kafka.tools.%s \"$@\"\n",
			java, javalibs.ClassPath(libs), class))
		if err := os.Chmod(filepath.Join(s.dir, name), 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
}

// program puts the relay on the path.
func (s *scene) program() {
	s.t.Helper()
	if err := os.Symlink(relayproc.Program(s.t), filepath.Join(s.dir, "relay")); err != nil {
		s.t.Fatal(err)
	}
	s.env = append(s.env, "PATH="+s.dir+string(filepath.ListSeparator)+os.Getenv("PATH"), "HOME="+s.dir)
}

func (s *scene) write(name, content string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// startRelay runs the relay until the test ends, and returns once it is ready.
func (s *scene) startRelay() {
	s.t.Helper()
	var log relayproc.Log
	cmd := exec.Command(filepath.Join(s.dir, "relay"))
	cmd.Env, cmd.Stderr = s.env, &log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if s.t.Failed() {
			s.t.Logf("the relay's log:\n%s", &log)
		}
	})
	relayproc.Until(s.t, "the relay to be ready", func() error { return s.readyz(http.StatusOK) })
}

// unready waits until the relay is not.
func (s *scene) unready() {
	s.t.Helper()
	relayproc.Until(s.t, "the relay to notice", func() error { return s.readyz(http.StatusServiceUnavailable) })
}

func (s *scene) readyz(want int) error {
	response, err := http.Get("http://" + s.http + "/readyz")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != want {
		return errors.New(response.Status)
	}
	return nil
}

// delivered waits until all rows are exported, and fails unless the topic then holds so many events.
func (s *scene) delivered(want int) {
	s.t.Helper()
	relayproc.Until(s.t, "all events to be exported", func() error {
		var n int
		err := s.db.QueryRow(s.t.Context(), "select count(*) from aksara_operation_outbox where exported_at is null").Scan(&n)
		if err == nil && n > 0 {
			err = fmt.Errorf("%d are left", n)
		}
		return err
	})
	events := relayproc.Events(s.t, s.broker.All(s.t, topic))
	relayproc.InOrder(s.t, events)
	if len(events) != want {
		s.t.Errorf("the topic holds %d events, want %d", len(events), want)
	}
}
