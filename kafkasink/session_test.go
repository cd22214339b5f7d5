package kafkasink

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kadm"

	"outboxrelay/internal/certtest"
	"outboxrelay/internal/kafkaserver"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/relay"
)

// rotated is a password that may be changed, and how often it was asked for.
type rotated struct {
	mu     sync.Mutex
	value  string
	logins int
}

func (r *rotated) ask() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logins++
	return r.value, nil
}

func (r *rotated) change(value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.value = value
}

func (r *rotated) asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.logins
}

// setPassword makes a user, or gives it another password.
func setPassword(t *testing.T, admin *kadm.Client, name, password string) {
	t.Helper()
	altered, err := admin.AlterUserSCRAMs(t.Context(), nil, []kadm.UpsertSCRAM{{
		User: name, Mechanism: kadm.ScramSha512, Iterations: 4096, Password: password,
	}})
	if err == nil {
		err = altered.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestSessionsEnd: a broker wants each connection to prove who it is again and again, and the password is changed meanwhile.
// No event fails, is lost or comes twice for that.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	own := kafkatest.Server(t, kafkaserver.Options{Secure: true, Settings: []string{"connections.max.reauth.ms=2000"}})
	topic, admin := own.Topic(t, 1, nil), own.Admin(t)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	certtest.Write(t, ca, []byte(own.Server.Credentials().CA))
	setPassword(t, admin, "relay", "first")
	acls := kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpAll)
	if _, err := admin.CreateACLs(t.Context(), acls.Allow("User:relay").AllowHosts()); err != nil {
		t.Fatal(err)
	}
	password := &rotated{value: "first"}
	cfg := config(own.Broker, topic)
	cfg.TLS = &TLS{CAFile: ca}
	cfg.SASL = &SASL{Mechanism: "SCRAM-SHA-512", Username: "relay", Password: password.ask}
	sink := openReady(t, cfg, quick())

	operation, sent := uuid.New(), 0
	load := func(logins int) {
		t.Helper()
		before := password.asked()
		waitFor(t, "further logins", func() error {
			sent++
			publish(t, sink, event(t, operation, sent, 10)).wantAll(relay.Delivered)
			if n := password.asked() - before; n < logins {
				return fmt.Errorf("%d of %d so far", n, logins)
			}
			return nil
		})
	}
	load(6)
	setPassword(t, admin, "relay", "second")
	password.change("second")
	load(6)
	checkTopic(t, own.Broker, topic, versions(operation, 1, sent))
}
