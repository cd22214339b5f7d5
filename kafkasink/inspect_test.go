package kafkasink_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/kafkasink"
	"outboxrelay/relay"
)

// finding is what is expected of one: parts of its texts.
type finding struct {
	level           relay.Level
	check, seen, do string
}

func wantFindings(t *testing.T, got []relay.Finding, want ...finding) {
	t.Helper()
	var bad []relay.Finding
	for _, f := range got {
		if f.Level != relay.OK {
			bad = append(bad, f)
		}
	}
	if len(bad) != len(want) {
		t.Fatalf("found %s\nwant %d findings that aren't ok: %+v", describe(got), len(want), want)
	}
	for i, w := range want {
		g := bad[i]
		if g.Level != w.level || g.Check != w.check || !strings.Contains(g.Seen, w.seen) || !strings.Contains(g.Do, w.do) {
			t.Errorf("found %s\nwant %s %s: ...%s... -> ...%s...", describe(bad[i:i+1]), w.level, w.check, w.seen, w.do)
		}
	}
}

func describe(all []relay.Finding) string {
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "\n  %s %s: %s -> %s", f.Level, f.Check, f.Seen, f.Do)
	}
	return b.String()
}

// inspectConfig is a sink that sends everything to one topic.
func inspectConfig(topic string, brokers ...string) kafkasink.Config {
	return kafkasink.Config{
		Connection:        kafkasink.Connection{Brokers: brokers, ClientID: "check"},
		Topic:             func(envelope.Scope) string { return topic },
		MinInsyncReplicas: 1,
	}
}

func inspect(t *testing.T, cfg kafkasink.Config) []relay.Finding {
	t.Helper()
	return kafkasink.Inspect(t.Context(), cfg, []envelope.Scope{envelope.NonTenant()})
}

func TestInspectJudgesTopics(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Plain(t)
	cases := []struct {
		name      string
		configs   map[string]string
		minInsync int
		want      []finding
	}{
		{"good", nil, 1, nil},
		{"promises less than asked for", map[string]string{"min.insync.replicas": "1"}, 2,
			[]finding{{relay.Fail, "topic replicas", "RELAY_KAFKA_MIN_INSYNC_REPLICAS is 2", "set RELAY_KAFKA_MIN_INSYNC_REPLICAS=1"}}},
		{"promises more than it can", map[string]string{"min.insync.replicas": "2"}, 1, []finding{
			{relay.Fail, "topic replicas", "has 1 replica and min.insync.replicas=2", "give it 2 replicas"},
			{relay.Warn, "topic in-sync replicas", "has 1 replica in sync now", "bring the missing brokers back"},
		}},
		{"takes small messages only", map[string]string{"max.message.bytes": "10000"}, 1,
			[]finding{{relay.Warn, "topic sizes", "up to 10000 bytes", "raise its max.message.bytes to 81920"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := inspectConfig(broker.Topic(t, 3, c.configs), broker.Addrs...)
			cfg.MinInsyncReplicas = c.minInsync
			wantFindings(t, inspect(t, cfg), c.want...)
		})
	}
	t.Run("missing", func(t *testing.T) {
		t.Parallel()
		wantFindings(t, inspect(t, inspectConfig("no-such-topic", broker.Addrs...)),
			finding{relay.Fail, "topic", `"no-such-topic" does not exist`, "RELAY_KAFKA_TOPIC"})
	})
}

// What is said of a topic of dead letters names its own setting, and what happens to letters.
func TestInspectJudgesDeadLetterTopics(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Plain(t)
	small := broker.Topic(t, 1, map[string]string{"max.message.bytes": "10000"})
	for topic, want := range map[string]finding{
		"no-such-letters": {relay.Fail, "topic", `dead-letter topic "no-such-letters" does not exist`, "RELAY_DEAD_LETTER_TOPIC"},
		small:             {relay.Warn, "topic sizes", fmt.Sprintf("dead-letter topic %q takes", small), "goes without the event's payload"},
	} {
		cfg := inspectConfig(broker.Topic(t, 1, nil), broker.Addrs...)
		cfg.DeadLetterTopic = func(envelope.Scope) string { return topic }
		wantFindings(t, inspect(t, cfg), want)
	}
}

func TestInspectIsShortForManyTopics(t *testing.T) {
	t.Parallel()
	var scopes []envelope.Scope
	var there []string
	for n := range 1000 {
		scope, err := envelope.Tenant(fmt.Sprint(n))
		if err != nil {
			t.Fatal(err)
		}
		scopes = append(scopes, scope)
		if n%2 == 0 {
			there = append(there, fmt.Sprint("events-", n))
		}
	}
	broker := kafkatest.Fake(t, kfake.SeedTopics(1, there...))
	cfg := inspectConfig("", broker.Addrs...)
	cfg.Topic = func(s envelope.Scope) string { id, _ := s.Tenant(); return "events-" + id }
	got := kafkasink.Inspect(t.Context(), cfg, scopes)
	if len(got) != 13 || got[11].Seen != "490 more topics are not as they should be" || got[11].Level != relay.Fail ||
		got[12].Seen != "500 topics are as they should be" {
		t.Errorf("found %s", describe(got))
	}
}

func TestInspectNamesEachMissingRight(t *testing.T) {
	t.Parallel()
	secured := kafkatest.Secure(t)
	all := []kadm.ACLOperation{kadm.OpWrite, kadm.OpDescribe, kadm.OpDescribeConfigs}
	cases := []struct {
		name    string
		allowed []kadm.ACLOperation
		want    []finding
	}{
		{"all", all, nil},
		{"no describe configs", all[:2], []finding{{relay.Fail, "topic rights", "missing: DESCRIBE_CONFIGS", "grant DESCRIBE_CONFIGS on it"}}},
		{"no write", all[1:], []finding{{relay.Fail, "topic rights", "missing: WRITE", "grant WRITE on it"}}},
		{"only describe", all[1:2], []finding{{relay.Fail, "topic rights", "missing: WRITE, DESCRIBE_CONFIGS", "grant WRITE, DESCRIBE_CONFIGS on it"}}},
		{"only describe configs", all[2:], []finding{{relay.Fail, "topic rights", "missing: DESCRIBE, WRITE", "grant DESCRIBE, WRITE on it"}}},
		{"none", nil, []finding{{relay.Fail, "topic rights", "missing: DESCRIBE, WRITE, DESCRIBE_CONFIGS", "it may also not exist"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			topic, user := secured.Topic(t, 1, nil), secured.User(t)
			if c.allowed != nil {
				secured.Allow(t, user, kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral).Operations(c.allowed...))
			}
			cfg := inspectConfig(topic, secured.Addrs...)
			cfg.TLS, cfg.SASL = &kafkasink.TLS{CAFile: secured.CAFile(t)}, login(user)
			wantFindings(t, inspect(t, cfg), c.want...)
		})
	}
}

func login(user kafkatest.User) *kafkasink.SASL {
	return &kafkasink.SASL{
		Mechanism: "SCRAM-SHA-512", Username: user.Name,
		Password: func() (string, error) { return user.Password, nil },
	}
}

func TestInspectTellsWhyNoBrokerCanBeUsed(t *testing.T) {
	t.Parallel()
	secured, plain := kafkatest.Secure(t), kafkatest.Plain(t)
	user := secured.User(t)
	tls := &kafkasink.TLS{CAFile: secured.CAFile(t)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	listener.Close()
	cases := []struct {
		name     string
		brokers  []string
		tls      *kafkasink.TLS
		sasl     *kafkasink.SASL
		seen, do string
	}{
		{"nothing listens", []string{closed}, nil, nil, closed, "correct RELAY_KAFKA_BROKERS"},
		{"no such host", []string{"broker.invalid:9092"}, nil, nil, "broker.invalid:9092", "correct the host in RELAY_KAFKA_BROKERS"},
		{"wrong password", secured.Addrs, tls, login(kafkatest.User{Name: user.Name, Password: "hush"}), "SASL", "RELAY_KAFKA_SASL_PASSWORD"},
		{"unknown user", secured.Addrs, tls, login(kafkatest.User{Name: "nobody-at-all", Password: "hush"}), "SASL", "RELAY_KAFKA_SASL_USERNAME"},
		{"no login", secured.Addrs, tls, nil, secured.Addrs[0], "RELAY_KAFKA_SASL_MECHANISM"},
		{"another mechanism", secured.Addrs, tls, &kafkasink.SASL{Mechanism: "PLAIN", Username: user.Name, Password: login(user).Password}, "SASL", "RELAY_KAFKA_SASL_MECHANISM"},
		{"plain text to a TLS port", secured.Addrs, nil, login(user), secured.Addrs[0], "RELAY_KAFKA_TLS=true"},
		{"TLS to a plain port", plain.Addrs, tls, nil, plain.Addrs[0], "RELAY_KAFKA_TLS=false"},
		{"unknown authority", secured.Addrs, &kafkasink.TLS{CAFile: otherAuthority(t)}, login(user), "x509", "RELAY_KAFKA_TLS_CA_FILE"},
		{"no such file", secured.Addrs, &kafkasink.TLS{CAFile: "/no/such/file"}, login(user), "/no/such/file", "make the file readable"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := inspectConfig("events", c.brokers...)
			cfg.TLS, cfg.SASL = c.tls, c.sasl
			got := inspect(t, cfg)
			wantFindings(t, got, finding{relay.Fail, "brokers", c.seen, c.do})
			if all := describe(got); strings.Contains(all, "hush") || strings.Contains(all, user.Password) {
				t.Errorf("a password is shown: %s", all)
			}
		})
	}
}

// otherAuthority is a certificate that signed nothing, in a file.
func otherAuthority(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "other.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
