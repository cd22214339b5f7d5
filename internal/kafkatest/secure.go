package kafkatest

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"outboxrelay/internal/kafkaserver"
)

// Secured is a broker that takes clients with TLS and SCRAM-SHA-512 only, and allows users only what an ACL says. Its Broker
// is the administrator's, who may do everything.
type Secured struct {
	*Broker
	credentials kafkaserver.Credentials
}

// User may log in to a secured broker.
type User struct{ Name, Password string }

// Secure returns the process's secured broker.
func Secure(t testing.TB) *Secured {
	t.Helper()
	credentials, err := sharedSecure()
	if err != nil {
		t.Fatalf("kafkatest: no secured Kafka broker for the tests: %v", err)
	}
	administrator := User{Name: credentials.Username, Password: credentials.Password}
	return &Secured{
		Broker:      &Broker{Addrs: credentials.Addrs, security: security(t, credentials.CA, administrator)},
		credentials: credentials,
	}
}

// As returns the broker as user sees it.
func (s *Secured) As(t testing.TB, user User) *Broker {
	t.Helper()
	return &Broker{Addrs: s.Addrs, security: security(t, s.credentials.CA, user)}
}

// CAFile writes the certificate of the broker's issuer, PEM, to a file of the test's and returns its path.
func (s *Secured) CAFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, []byte(s.credentials.CA), 0o644); err != nil {
		t.Fatalf("kafkatest: %v", err)
	}
	return path
}

// User makes a user, and returns once it can log in. It may do nothing at first; see Allow.
func (s *Secured) User(t testing.TB) User {
	t.Helper()
	ctx, cancel := step()
	defer cancel()
	user := User{Name: Name("user"), Password: rand.Text()}
	s.SetPassword(t, user)
	client := s.As(t, user).Client(t)
	await(t, ctx, "user "+user.Name, func() error { return client.Ping(ctx) })
	return user
}

// SetPassword makes a user, or gives it another password. The broker is its administrator's.
func (b *Broker) SetPassword(t testing.TB, user User) {
	t.Helper()
	ctx, cancel := step()
	defer cancel()
	altered, err := b.Admin(t).AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{{
		User: user.Name, Mechanism: kadm.ScramSha512, Iterations: 4096, Password: user.Password,
	}})
	if err == nil {
		err = altered.Error()
	}
	if err != nil {
		t.Fatalf("kafkatest: set password of %s: %v", user.Name, err)
	}
}

// Allow gives user what acls describe (resources, a pattern, operations), and returns once it holds. The broker is its
// administrator's.
func (b *Broker) Allow(t testing.TB, user User, acls *kadm.ACLBuilder) {
	t.Helper()
	ctx, cancel := step()
	defer cancel()
	admin := b.Admin(t)
	acls.Allow("User:" + user.Name).AllowHosts()
	created, err := admin.CreateACLs(ctx, acls)
	if err != nil {
		t.Fatalf("kafkatest: make ACLs: %v", err)
	}
	for _, acl := range created {
		if acl.Err != nil {
			t.Fatalf("kafkatest: make ACL on %v %s: %v", acl.Type, acl.Name, acl.Err)
		}
	}
	await(t, ctx, "ACLs of "+user.Name, func() error { return inForce(ctx, admin, acls, len(created)) })
}

// Revoke takes what Allow has given, and returns once it no longer holds.
func (b *Broker) Revoke(t testing.TB, user User, acls *kadm.ACLBuilder) {
	t.Helper()
	ctx, cancel := step()
	defer cancel()
	admin := b.Admin(t)
	acls.Allow("User:" + user.Name).AllowHosts()
	deleted, err := admin.DeleteACLs(ctx, acls)
	if err != nil {
		t.Fatalf("kafkatest: delete ACLs: %v", err)
	}
	for _, acl := range deleted {
		if acl.Err != nil || len(acl.Deleted) == 0 {
			t.Fatalf("kafkatest: delete ACL on %v: %d deleted, %v", acl.Type, len(acl.Deleted), acl.Err)
		}
	}
	await(t, ctx, "end of ACLs of "+user.Name, func() error {
		if inForce(ctx, admin, acls, 1) == nil {
			return errors.New("some are still in force")
		}
		return nil
	})
}

// inForce asks the broker for ACLs that were made: it tells of them when it obeys them.
func inForce(ctx context.Context, admin *kadm.Client, acls *kadm.ACLBuilder, n int) error {
	results, err := admin.DescribeACLs(ctx, acls)
	if err != nil {
		return err
	}
	found := 0
	for _, result := range results {
		if result.Err != nil {
			return result.Err
		}
		found += len(result.Described)
	}
	if found < n {
		return fmt.Errorf("%d of %d are in force", found, n)
	}
	return nil
}

// security are a client's options for a secured broker.
func security(t testing.TB, ca string, user User) []kgo.Opt {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(ca)) {
		t.Fatal("kafkatest: the secured broker's CA is no PEM certificate")
	}
	return []kgo.Opt{
		kgo.DialTLSConfig(&tls.Config{RootCAs: pool}),
		kgo.SASL(scram.Auth{User: user.Name, Pass: user.Password}.AsSha512Mechanism()),
	}
}
