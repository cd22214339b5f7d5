package imagetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	mrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"outboxrelay/envelope"
	"outboxrelay/internal/childproc"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/pgserver"
	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/sample"
	"outboxrelay/migrations"
)

const (
	password = "of the relay"
	zone     = "Asia/Kathmandu"
	offset   = "+05:45" // no other zone's
)

// As confined as a container can be, and as far from home: a file system that can't be written to, a user that nobody knows,
// no capability, little memory, another time zone, and both servers behind certificates of a private authority.
func TestRelayRunsConfined(t *testing.T) {
	mustBuild(t)
	files := t.TempDir() // the only thing that the container sees of this machine
	database := securedDatabase(t, files)
	broker := kafkatest.Secure(t)
	user := broker.User(t)
	topic := broker.Topic(t, 1, nil)
	operations := []kadm.ACLOperation{kmsg.ACLOperationWrite, kmsg.ACLOperationDescribe, kmsg.ACLOperationDescribeConfigs}
	broker.Allow(t, user, kadm.NewACLs().Topics(topic).Operations(operations...).ResourcePatternType(kadm.ACLPatternLiteral))
	write(t, files, "kafka-password", user.Password)
	write(t, files, "database-password", password)
	copyFile(t, broker.CAFile(t), files, "kafka-ca.pem")
	ports, err := childproc.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}

	uid := 100_000 + mrand.IntN(1<<30)
	t.Logf("user %d", uid)
	args := []string{
		"run", "--detach", "--network", "host", "--read-only", "--user", fmt.Sprintf("%d:%d", uid, uid), "--cap-drop", "ALL",
		"--security-opt", "no-new-privileges", "--memory", "128m", "--volume", files + ":/files:ro", "--health-interval", "1s",
	}
	for _, variable := range []string{
		"TZ=" + zone,
		fmt.Sprintf("RELAY_DATABASE_URL=postgres://relay@localhost:%d/app?sslmode=verify-full&sslrootcert=/files/postgres-ca.pem", database.Port()),
		"RELAY_DATABASE_PASSWORD_FILE=/files/database-password",
		"RELAY_NAMESPACE=orders",
		"RELAY_TENANTS=acme",
		"RELAY_KAFKA_BROKERS=" + strings.Join(broker.Addrs, ","),
		"RELAY_KAFKA_TOPIC=" + topic,
		"RELAY_KAFKA_MIN_INSYNC_REPLICAS=1",
		"RELAY_KAFKA_TLS=true",
		"RELAY_KAFKA_TLS_CA_FILE=/files/kafka-ca.pem",
		"RELAY_KAFKA_SASL_MECHANISM=SCRAM-SHA-512",
		"RELAY_KAFKA_SASL_USERNAME=" + user.Name,
		"RELAY_KAFKA_SASL_PASSWORD_FILE=/files/kafka-password",
		"RELAY_HTTP_ADDRESS=" + childproc.Loopback(ports[0]),
	} {
		args = append(args, "--env", variable)
	}
	relay := docker(t, append(args, image)...)
	t.Cleanup(func() { docker(t, "rm", "--force", relay) })
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(logOf(t, relay))
		}
	})

	for _, record := range broker.Consume(t, topic, 3) {
		if _, err := envelope.Parse(recordOf(record)); err != nil {
			t.Error(err)
		}
	}
	eventually(t, func() error { return ready(childproc.Loopback(ports[0])) })
	eventually(t, func() error { return healthy(relay) })
	if written := docker(t, "diff", relay); strings.Contains(written, "/relay") {
		t.Errorf("the container has changed its files: %s", written)
	}

	begin := time.Now()
	docker(t, "stop", "--time", "25", relay)
	t.Logf("stopped in %s", time.Since(begin).Round(time.Millisecond))
	if status := inspect(t, relay, "{{.State.ExitCode}}"); status != "0" {
		t.Errorf("the relay ended with status %s", status)
	}
	var line struct{ Time string }
	first, _, _ := strings.Cut(logOf(t, relay), "\n")
	if err := json.Unmarshal([]byte(first), &line); err != nil || !strings.HasSuffix(line.Time, offset) {
		t.Errorf("the log does not tell the time of %s: %s (%v)", zone, first, err)
	}
}

func logOf(t *testing.T, container string) string {
	t.Helper()
	cmd := exec.Command("docker", "logs", container)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// securedDatabase is a server that takes the relay over TLS only, with three events for it, and leaves its authority's
// certificate in a folder.
func securedDatabase(t *testing.T, files string) *pgserver.Server {
	t.Helper()
	server := pgtest.Server(t)
	ca, certificate, key := newCertificates(t)
	write(t, files, "postgres-ca.pem", ca)
	account, err := childproc.Unprivileged("postgres", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	write(t, server.Dir(), "server.crt", certificate)
	write(t, server.Dir(), "server.key", key)
	privateKey := filepath.Join(server.Dir(), "server.key")
	if err := errors.Join(os.Chmod(privateKey, 0o600), account.Own(privateKey)); err != nil {
		t.Fatal(err)
	}
	// Who isn't the superuser has to bring TLS and a password.
	write(t, filepath.Join(server.Dir(), "data"), "pg_hba.conf",
		"host all postgres all trust\nhostssl all relay all scram-sha-256\n")
	execute(t, server.URL("postgres"),
		"alter system set ssl = on",
		fmt.Sprintf("alter system set ssl_cert_file = '%s/server.crt'", server.Dir()),
		fmt.Sprintf("alter system set ssl_key_file = '%s/server.key'", server.Dir()),
		"select pg_reload_conf()",
		"create role relay login password '"+password+"'",
		"create database app")
	conn := connect(t, server.URL("app"))
	if err := migrations.Run(t.Context(), conn, migrations.Options{Standalone: true, GrantTo: "relay"}); err != nil {
		t.Fatal(err)
	}
	acme, err := envelope.Tenant("acme")
	if err == nil {
		err = sample.Application{Namespace: "orders"}.Fill(t.Context(), conn, acme, 1, 3)
	}
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func execute(t *testing.T, url string, statements ...string) {
	t.Helper()
	conn := connect(t, url)
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(t.Context()) })
	return conn
}

// write writes a file that everybody may read.
func write(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.WriteFile(path, []byte(content), 0o644), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, dir, name string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, name, string(content))
}

// newCertificates makes an authority, and a certificate of it for localhost with its key; all PEM.
func newCertificates(t *testing.T) (ca, certificate, key string) {
	t.Helper()
	authorityKey, serverKey := newKey(t), newKey(t)
	authority := template(1, "an authority")
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	server := template(2, "localhost")
	server.DNSNames, server.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		t.Fatal(err)
	}
	serverDER, err := x509.CreateCertificate(rand.Reader, server, authority, serverKey.Public(), authorityKey)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(serverKey)
	if err != nil {
		t.Fatal(err)
	}
	return encode("CERTIFICATE", authorityDER), encode("CERTIFICATE", serverDER), encode("PRIVATE KEY", keyDER)
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func template(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
