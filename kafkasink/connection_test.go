package kafkasink

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/internal/certtest"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/relay"
)

// seeded starts a fake cluster with a topic. Its own clients don't know how to reach one that is secured.
func seeded(t *testing.T, options ...kfake.Opt) Config {
	t.Helper()
	return config(kafkatest.Fake(t, append(options, kfake.SeedTopics(1, "events"))...).Broker, "events")
}

func TestTLSFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	right, wrong := certtest.New(t), certtest.New(t)
	dir := t.TempDir()
	ca, cert, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	cfg := seeded(t, kfake.TLS(right.Server(t, right)))
	cfg.TLS = &TLS{CAFile: ca, CertFile: cert, KeyFile: key}
	sink := open(t, cfg, quick())

	wantReason(t, sink, "certificate authorities", ca, "no such file")
	certtest.Write(t, ca, []byte("no certificate"))
	wantReason(t, sink, "certificate authorities", ca, "holds no PEM certificate")
	certtest.Write(t, ca, wrong.PEM)
	wantReason(t, sink, "client certificate", cert, "no such file")
	certPEM, keyPEM := wrong.Issue(t, x509.ExtKeyUsageClientAuth)
	certtest.Write(t, cert, certPEM)
	certtest.Write(t, key, keyPEM)
	wantReason(t, sink, "x509", "unknown authority")
	certtest.Write(t, ca, right.PEM)
	wantReason(t, sink, "remote error", "tls")
	certPEM, keyPEM = right.Issue(t, x509.ExtKeyUsageClientAuth)
	certtest.Write(t, cert, certPEM)
	wantReason(t, sink, "client certificate", "private key does not match")
	certtest.Write(t, key, keyPEM)
	wantReady(t, sink)
	publish(t, sink, event(t, uuid.New(), 1, 10)).wantAll(relay.Delivered)
}

func TestTLSWithoutFiles(t *testing.T) {
	t.Parallel()
	cfg := seeded(t, kfake.TLS(certtest.New(t).Server(t, nil)))
	cfg.TLS = &TLS{}
	wantReason(t, open(t, cfg, quick()), "x509") // the system's authorities did not issue it
}

func TestLogin(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			right := certtest.New(t)
			ca := filepath.Join(t.TempDir(), "ca.pem")
			certtest.Write(t, ca, right.PEM)
			cfg := seeded(t, kfake.TLS(right.Server(t, nil)), kfake.EnableSASL(), kfake.Superuser(mechanism, "relay", "s3cret"))
			var secret atomic.Value
			secret.Store("wrong")
			cfg.TLS = &TLS{CAFile: ca}
			cfg.SASL = &SASL{Mechanism: mechanism, Username: "relay", Password: func() (string, error) { return secret.Load().(string), nil }}
			pace := quick()
			pace.ask = 500 * time.Millisecond
			sink := open(t, cfg, pace)
			wantReason(t, sink, "EOF") // all that a fake broker says; see TestSecuredBroker for a real one
			secret.Store("s3cret")
			wantReady(t, sink)
			publish(t, sink, event(t, uuid.New(), 1, 10)).wantAll(relay.Delivered)
		})
	}
}

// TestPasswordThatCannotBeRead is trouble of the environment, not of rows.
func TestPasswordThatCannotBeRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "password")
	cfg := seeded(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "relay", "s3cret"))
	cfg.DeliveryTimeout = time.Second
	cfg.SASL = &SASL{Mechanism: "PLAIN", Username: "relay", Password: func() (string, error) {
		content, err := os.ReadFile(path)
		return string(content), err
	}}
	sink := open(t, cfg, quick())
	wantReason(t, sink, path, "no such file")
	certtest.Write(t, path, []byte("s3cret"))
	wantReady(t, sink)

	// The client logs in anew for producing.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	a := publish(t, sink, event(t, uuid.New(), 1, 10))
	if class := relay.ClassOf(a.wait()[0]); class != relay.Environment {
		t.Errorf("without the password the event was answered as %s: %v", class, a.errs[0])
	}
	certtest.Write(t, path, []byte("s3cret"))
	wantReady(t, sink)
	publish(t, sink, event(t, uuid.New(), 1, 10)).wantAll(relay.Delivered)
}

// TestSecuredBroker delivers to a real one with TLS and SCRAM, once the password is right.
func TestSecuredBroker(t *testing.T) {
	t.Parallel()
	secured := kafkatest.Secure(t)
	topic, user := secured.Topic(t, 1, nil), secured.User(t)
	secured.Allow(t, user, kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral).
		Operations(kadm.OpWrite, kadm.OpDescribe, kadm.OpDescribeConfigs))
	var password atomic.Value
	password.Store("hush-wrong")
	var log lines
	cfg := config(secured.Broker, topic)
	cfg.Log = log.add
	cfg.TLS = &TLS{CAFile: secured.CAFile(t)}
	cfg.SASL = &SASL{Mechanism: "SCRAM-SHA-512", Username: user.Name, Password: func() (string, error) { return password.Load().(string), nil }}
	sink := open(t, cfg, quick())
	wantReason(t, sink, "SASL_AUTHENTICATION_FAILED")
	password.Store(user.Password)
	wantReady(t, sink)
	e := event(t, uuid.New(), 1, 10)
	publish(t, sink, e).wantAll(relay.Delivered)
	if got := ids(t, secured.Broker, topic); len(got) != 1 || got[0] != e.ID() {
		t.Errorf("topic holds %q, want %s", got, e.ID())
	}
	if text := log.text(); strings.Contains(text, "hush-wrong") || strings.Contains(text, user.Password) || !strings.Contains(text, "sasl") {
		t.Errorf("the client's log is\n%s\nwant the failed login in it, and no password", text)
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	s := &SASL{Mechanism: "OAUTHBEARER", Token: func() (string, error) { return "abc", nil }}
	mechanism, err := s.mechanism()
	if err != nil || mechanism.Name() != "OAUTHBEARER" {
		t.Fatalf("mechanism = %v, %v", mechanism, err)
	}
	if _, first, err := mechanism.Authenticate(t.Context(), "host"); err != nil || !strings.Contains(string(first), "auth=Bearer abc\x01") {
		t.Errorf("first message %q, %v, want the token in it", first, err)
	}
	away := errors.New("no token there")
	s.Token = func() (string, error) { return "", away }
	if mechanism, err = s.mechanism(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := mechanism.Authenticate(t.Context(), "host"); !errors.Is(err, away) {
		t.Errorf("Authenticate = %v, want the token's error", err)
	}
}

func TestUnknownMechanism(t *testing.T) {
	t.Parallel()
	cfg := Config{Connection: Connection{Brokers: []string{"127.0.0.1:1"}, SASL: &SASL{Mechanism: "GSSAPI"}}, Compression: "none"}
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "GSSAPI") {
		t.Errorf("New = %v, want the mechanism named", err)
	}
}

// TestOptionsFitTogether: the client refuses some options beside others, such as a dialer beside a TLS configuration.
func TestOptionsFitTogether(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Connection{
		"plain": {Brokers: []string{"127.0.0.1:1"}},
		"all": {
			Brokers: []string{"127.0.0.1:1", "localhost:2", "[::1]:3"}, ClientID: "relay", Log: func(string) {},
			TLS:  &TLS{CAFile: "a", CertFile: "b", KeyFile: "c"},
			SASL: &SASL{Mechanism: "PLAIN", Username: "relay", Password: func() (string, error) { return "", nil }},
		},
	} {
		opts, err := c.Options()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		client, err := kgo.NewClient(opts...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		client.Close()
	}
}

// TestDialEndsWithItsContext: a server that takes connections and says nothing must not hold the client up.
func TestDialEndsWithItsContext(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	conn, err := (Connection{TLS: &TLS{}}).dial(ctx, "tcp", silent.Addr().String())
	if err == nil {
		conn.Close()
		t.Fatal("dial gave a connection")
	}
	if relay.ClassOf(classify(err)) != relay.Environment {
		t.Errorf("%v is classed as %s", err, relay.ClassOf(classify(err)))
	}
}

// lines collects what a client logs.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}
