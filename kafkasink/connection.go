package kafkasink

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const dialTimeout = 5 * time.Second

// Connection is how a Kafka cluster is reached.
type Connection struct {
	Brokers  []string // host:port; names are looked up at each dial
	ClientID string
	TLS      *TLS  // nil: plain text
	SASL     *SASL // nil: no authentication
	// Log, if not nil, takes the client's warnings and errors, perhaps often.
	Log func(message string)
}

// TLS names PEM files. They are read again for each new connection, so renewed
// certificates need no restart. Empty names stand for the system's authorities and for
// no client certificate.
type TLS struct{ CAFile, CertFile, KeyFile string }

// SASL is how the client authenticates. The functions are called for each new
// connection, so that rotated secrets need no restart.
type SASL struct {
	Mechanism string // PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER
	Username  string
	Password  func() (string, error)
	Token     func() (string, error) // OAUTHBEARER only
}

// Options gives the client options for a connection, for producers and consumers alike.
func (c Connection) Options() ([]kgo.Opt, error) {
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID(c.ClientID),
		kgo.Dialer(c.dial),
		// After a leader change the client waits this long for news; the default is 5 s.
		kgo.MetadataMinAge(250 * time.Millisecond),
		// New partitions are used after at most this long.
		kgo.MetadataMaxAge(time.Minute),
	}
	if c.Log != nil {
		opts = append(opts, kgo.WithLogger(clientLog{c.Log}))
	}
	if c.SASL != nil {
		mechanism, err := c.SASL.mechanism()
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(mechanism))
	}
	return opts, nil
}

func (c Connection) dial(ctx context.Context, network, host string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialTimeout}
	if c.TLS == nil {
		return dialer.DialContext(ctx, network, host)
	}
	config, err := c.TLS.config()
	if err != nil {
		return nil, notConnected(err)
	}
	conn, err := (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, network, host)
	if err != nil {
		return nil, notConnected(err)
	}
	return conn, nil
}

// notConnected makes err one of the network. For others the client gives up the records
// that wait for the connection, as if the fault were theirs.
func notConnected(err error) error {
	var network *net.OpError
	if err == nil || errors.As(err, &network) {
		return err
	}
	return &net.OpError{Op: "dial", Net: "tcp", Err: err}
}

func (t *TLS) config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read certificate authorities: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read certificate authorities: %s holds no PEM certificate", t.CAFile)
		}
	}
	if t.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{cert}
	}
	return config, nil
}

func (s *SASL) mechanism() (sasl.Mechanism, error) {
	scramAuth := func(context.Context) (scram.Auth, error) {
		password, err := s.Password()
		return scram.Auth{User: s.Username, Pass: password}, notConnected(err)
	}
	switch s.Mechanism {
	case "PLAIN":
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			password, err := s.Password()
			return plain.Auth{User: s.Username, Pass: password}, notConnected(err)
		}), nil
	case "SCRAM-SHA-256":
		return scram.Sha256(scramAuth), nil
	case "SCRAM-SHA-512":
		return scram.Sha512(scramAuth), nil
	case "OAUTHBEARER":
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			token, err := s.Token()
			return oauth.Auth{Token: token}, notConnected(err)
		}), nil
	default:
		return nil, errors.New("unknown SASL mechanism " + s.Mechanism)
	}
}

// clientLog passes the client's warnings and errors on as lines.
type clientLog struct{ line func(string) }

func (l clientLog) Level() kgo.LogLevel { return kgo.LogLevelWarn }

func (l clientLog) Log(_ kgo.LogLevel, msg string, keyvals ...any) {
	var b strings.Builder
	b.WriteString(msg)
	for i := 0; i+1 < len(keyvals); i += 2 {
		fmt.Fprintf(&b, " %v=%v", keyvals[i], keyvals[i+1])
	}
	l.line(b.String())
}
