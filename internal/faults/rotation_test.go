package faults_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/internal/certtest"
	"outboxrelay/internal/kafkaserver"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/relayproc"
)

// Both passwords are changed again and again while an application writes, on the servers first and in the relay's files when
// it can't do without any more. The same process goes on each time; nothing is lost and nothing parked.
func TestPasswordsAreRotated(t *testing.T) {
	t.Parallel()
	// The client logs in anew a second before it has to, and a broker takes that no more than once a second.
	own := kafkatest.Server(t, kafkaserver.Options{Secure: true, Settings: []string{"connections.max.reauth.ms=3000"}})
	user := kafkatest.User{Name: "relay", Password: rand.Text()}
	own.SetPassword(t, user)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	certtest.Write(t, ca, []byte(own.Server.Credentials().CA))

	s, server := newSceneOnServer(t)
	s.Broker, s.Topic = own.Broker, own.Topic(t, 6, nil)
	own.Allow(t, user, transitions(s.Topic))
	s.DB.Exec(t, "alter role relay password 'first'")
	hba := filepath.Join(server.Dir(), "data", "pg_hba.conf")
	if err := os.WriteFile(hba, []byte("host all relay all scram-sha-256\nhost all all all trust\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.DB.Exec(t, "select pg_reload_conf()")
	env, kafkaPassword := secured(t, ca, user)
	databasePassword := filepath.Join(t.TempDir(), "database-password")
	certtest.Write(t, databasePassword, []byte("first\n"))
	stop := s.startLoad()
	s.run(env, shortLease, quickRetry, map[string]string{"RELAY_DATABASE_PASSWORD_FILE": databasePassword})
	s.progress(100)

	for round := range 2 {
		user.Password = rand.Text()
		own.SetPassword(t, user)
		if round > 0 { // once the file is there in time
			s.unready("SASL_AUTHENTICATION_FAILED")
		}
		certtest.Write(t, kafkaPassword, []byte(user.Password+"\n"))
		s.progress(100)

		next := rand.Text()
		s.DB.Exec(t, "alter role relay password '"+next+"'")
		s.DB.Exec(t, "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'relay'")
		if round > 0 {
			s.unready("password authentication failed")
		}
		certtest.Write(t, databasePassword, []byte(next+"\n"))
		s.progress(100)
	}
	stop()
	s.deliveredInOrder()
}

// The authority that brokers take clients' certificates from is replaced while an application writes. As soon as there is a
// certificate of the new one on disk the same relay goes on; nothing is lost and nothing parked.
func TestClientCertificateIsRotated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	trusted, ca := filepath.Join(dir, "trusted.pem"), filepath.Join(dir, "ca.pem")
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	former, next := certtest.New(t), certtest.New(t)
	renew := func(authority *certtest.Authority) {
		certPEM, keyPEM := authority.Issue(t, x509.ExtKeyUsageClientAuth)
		certtest.Write(t, cert, certPEM)
		certtest.Write(t, key, keyPEM)
	}
	certtest.Write(t, trusted, former.PEM)
	renew(former)
	const listener = "listener.name.clients."
	own := kafkatest.Server(t, kafkaserver.Options{Secure: true, Settings: []string{
		listener + "ssl.client.auth=required", listener + "ssl.truststore.type=PEM", listener + "ssl.truststore.location=" + trusted,
	}})
	certtest.Write(t, ca, []byte(own.Server.Credentials().CA))
	broker := own.With(kgo.DialTLSConfig(clientTLS(t, ca, cert, key)))
	user := kafkatest.User{Name: "relay", Password: rand.Text()}
	broker.SetPassword(t, user)

	s := &scene{Fixture: relayproc.New(t, relayproc.Standalone, broker), acme: relayproc.Tenant(t, "acme")}
	broker.Allow(t, user, transitions(s.Topic))
	env, _ := secured(t, ca, user)
	env["RELAY_KAFKA_TLS_CERT_FILE"], env["RELAY_KAFKA_TLS_KEY_FILE"] = cert, key
	stop := s.startLoad()
	s.run(env, quickRetry)
	s.progress(100)

	certtest.Write(t, trusted, next.PEM)
	if err := own.Server.Kill(1); err != nil {
		t.Fatal(err)
	}
	if err := own.Server.Start(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	s.unready("tls: unknown certificate")
	renew(next)
	s.progress(100)
	s.ready()
	stop()
	s.deliveredInOrder()
}

// clientTLS reads its files anew for each connection, as the relay does.
func clientTLS(t *testing.T, ca, cert, key string) *tls.Config {
	t.Helper()
	text, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatal(fmt.Errorf("%s holds no certificate", ca))
	}
	return &tls.Config{RootCAs: pool, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		return &pair, err
	}}
}

// Bearer tokens live for seconds and are renewed on disk while an application writes. When one isn't renewed in time, events wait for
// the next. The broker takes tokens that nobody has signed, which is all that Kafka can do by itself.
func TestTokensAreRenewed(t *testing.T) {
	t.Parallel()
	own := kafkatest.Server(t, kafkaserver.Options{Secure: true, Settings: []string{
		"connections.max.reauth.ms=60000", "sasl.enabled.mechanisms=SCRAM-SHA-512,OAUTHBEARER",
		`listener.name.clients.oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required ` +
			`unsecuredLoginStringClaim_sub="broker";`,
	}})
	dir := t.TempDir()
	ca, file := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "token")
	certtest.Write(t, ca, []byte(own.Server.Credentials().CA))
	s := &scene{Fixture: relayproc.New(t, relayproc.Standalone, own.Broker), acme: relayproc.Tenant(t, "acme")}
	own.Allow(t, kafkatest.User{Name: "relay"}, transitions(s.Topic))
	const life = 5 * time.Second
	endRenewal := renewing(func() { certtest.Write(t, file, token("relay", life)) })
	defer endRenewal()
	stop := s.startLoad()
	s.run(quickRetry, map[string]string{
		"RELAY_KAFKA_TLS": "true", "RELAY_KAFKA_TLS_CA_FILE": ca, "RELAY_KAFKA_SASL_MECHANISM": "OAUTHBEARER",
		"RELAY_KAFKA_SASL_TOKEN_FILE": file, "RELAY_HTTP_DETAILS": "true",
	})
	s.progress(100)
	for begun := time.Now(); time.Since(begun) < 3*life; {
		s.progress(100)
	}
	if log := s.relay.Log.String(); strings.Contains(log, "SASL_AUTHENTICATION_FAILED") {
		t.Error("a token ended before it was replaced")
	}
	endRenewal()
	s.unready("SASL_AUTHENTICATION_FAILED")
	certtest.Write(t, file, token("relay", time.Hour))
	s.progress(200)
	stop()
	s.deliveredInOrder()
}

// renewing calls renew now and every second, until end is called.
func renewing(renew func()) (end func()) {
	renew()
	ctx, cancel := context.WithCancel(context.Background())
	var renewal sync.WaitGroup
	renewal.Go(func() {
		for tick := time.Tick(time.Second); ; {
			select {
			case <-tick:
				renew()
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		renewal.Wait()
	}
}

// token is one that nobody has signed.
func token(user string, life time.Duration) []byte {
	part := func(format string, args ...any) string {
		return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, format, args...))
	}
	now := time.Now()
	return []byte(part(`{"alg":"none"}`) + "." + part(`{"sub":%q,"iat":%d,"exp":%d}`, user, now.Unix(), now.Add(life).Unix()) + ".\n")
}
