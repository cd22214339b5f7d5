package kafkasink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/relay"
)

// unreachable is a fault of a connection to a broker, with the variables to look at.
func (c Connection) unreachable(what string, err error) relay.Finding {
	return fault("brokers", what+": "+err.Error(), c.advice(err))
}

// because puts the cause of an ended context before the client's words.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// advice is what to do about a connection that failed.
func (c Connection) advice(err error) string {
	var (
		lookup      *net.DNSError
		certificate *tls.CertificateVerificationError
		alert       tls.AlertError
		notTLS      tls.RecordHeaderError
		cut         *kgo.ErrFirstReadEOF
		file        *fs.PathError
	)
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "correct RELAY_KAFKA_SASL_USERNAME and RELAY_KAFKA_SASL_PASSWORD (or RELAY_KAFKA_SASL_TOKEN_FILE)"
	case errors.Is(err, kerr.UnsupportedSaslMechanism), errors.Is(err, kerr.IllegalSaslState):
		return "set RELAY_KAFKA_SASL_MECHANISM to one that the brokers offer"
	case errors.As(err, &certificate):
		return "set RELAY_KAFKA_TLS_CA_FILE to the authority that issued the broker's certificate, and use a host name that it holds in RELAY_KAFKA_BROKERS"
	case errors.As(err, &notTLS):
		return "the port does not speak TLS: correct RELAY_KAFKA_BROKERS, or set RELAY_KAFKA_TLS=false"
	case errors.As(err, &alert):
		return "the broker refused the TLS connection: it may want a client certificate, RELAY_KAFKA_TLS_CERT_FILE and RELAY_KAFKA_TLS_KEY_FILE"
	case errors.As(err, &lookup):
		return "correct the host in RELAY_KAFKA_BROKERS, or make its name known"
	case errors.As(err, &file):
		return "make the file readable, or correct the RELAY_KAFKA_ variable that names it"
	case errors.As(err, &cut):
		return c.wrongSpeech()
	}
	advice := "start the brokers, or correct RELAY_KAFKA_BROKERS"
	if c.TLS == nil {
		return advice + "; for a port that speaks TLS set RELAY_KAFKA_TLS=true"
	}
	return advice + "; for a port without TLS set RELAY_KAFKA_TLS=false"
}

// wrongSpeech is the advice for a broker that hangs up at the first word.
func (c Connection) wrongSpeech() string {
	switch {
	case c.TLS == nil && c.SASL == nil:
		return "the port may speak TLS (RELAY_KAFKA_TLS=true) or ask for a login (RELAY_KAFKA_SASL_MECHANISM)"
	case c.TLS == nil:
		return "the port may speak TLS: set RELAY_KAFKA_TLS=true"
	case c.SASL == nil:
		return "the port may not speak TLS (RELAY_KAFKA_TLS=false) or ask for a login (RELAY_KAFKA_SASL_MECHANISM)"
	default:
		return "the port may not speak TLS: set RELAY_KAFKA_TLS=false"
	}
}
