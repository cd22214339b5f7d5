package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"outboxrelay/relay"
)

// Unreachable tells of an error that is about a connection why there is none, in one line, and which setting to look at; ok is
// false for any other error. passwordFrom is the setting that the password came from, if that is known.
func Unreachable(err error, passwordFrom string) (seen, do string, ok bool) {
	var connect *pgconn.ConnectError
	if !errors.As(err, &connect) {
		return "", "", false
	}
	return noConnection(connect.Config, furthest(connect.Unwrap())), connectAdvice(connect.Config, err, passwordFrom), true
}

// unreachable tells why there is no connection, and which setting to look at.
func (s *Store) unreachable(ctx context.Context, err error) relay.Finding {
	f := relay.Finding{Check: "database", Level: relay.Fail}
	var ok bool
	if f.Seen, f.Do, ok = Unreachable(err, s.passwordFrom); ok {
		return f
	}
	config, configErr := s.connConfig(ctx)
	if configErr != nil {
		f.Seen = "the credentials can't be read: " + configErr.Error()
		f.Do = "make the files that RELAY_DATABASE_URL_FILE and RELAY_DATABASE_PASSWORD_FILE name readable"
		return f
	}
	f.Seen = noConnection(&config.Config, explain(ctx, err).Error())
	f.Do = connectAdvice(&config.Config, err, s.passwordFrom)
	return f
}

func noConnection(config *pgconn.Config, why string) string {
	return fmt.Sprintf("no connection to %s, database %q, as %q: %s", addresses(config), config.Database, config.User, why)
}

// connConfig is how the next connection would be made.
func (s *Store) connConfig(ctx context.Context) (*pgx.ConnConfig, error) {
	config := s.pool.Config()
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return nil, err
		}
	}
	return config.ConnConfig, nil
}

// addresses names the servers that a connection may go to.
func addresses(config *pgconn.Config) string {
	all := []string{address(config.Host, config.Port)}
	for _, f := range config.Fallbacks {
		if a := address(f.Host, f.Port); !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return strings.Join(all, ", ")
}

func address(host string, port uint16) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

// furthest is why a connection was not made, in one line. The driver makes several attempts: to each address, and with
// sslmode=prefer with TLS and without, of which the last got furthest. What a server answered to a login hides all else, unless
// it lets nobody in, which it may do for want of TLS.
func furthest(err error) string {
	attempts := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		attempts = joined.Unwrap()
	}
	var order, answers []string
	last := map[string]string{}
	hides := true
	for _, attempt := range attempts {
		var refusal *pgconn.PgError
		text := strings.ReplaceAll(attempt.Error(), "\n", "; ")
		if errors.As(attempt, &refusal) {
			answers = append(answers, text)
			hides = hides && refusal.Code != notAuthorized
			continue
		}
		address, _, _ := strings.Cut(text, "): ")
		if last[address] == "" {
			order = append(order, address)
		}
		last[address] = text
	}
	told := slices.Compact(answers)
	if len(answers) == 0 || !hides {
		for _, address := range order {
			told = append(told, last[address])
		}
	}
	return strings.Join(told, "; ")
}

// connectAdvice is what to do about a connection that was not made.
func connectAdvice(config *pgconn.Config, err error, passwordFrom string) string {
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) {
		return refusalAdvice(config, refusal.Code, passwordFrom)
	}
	var lookup *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &lookup):
		return "correct the host in RELAY_DATABASE_URL, or make its name known"
	case errors.As(err, &certificate):
		return "set sslrootcert in RELAY_DATABASE_URL to the authority that issued the server's certificate, and use a host name that it holds"
	default:
		return "start the server, or correct host and port in RELAY_DATABASE_URL; with several hosts one must accept writes"
	}
}

// notAuthorized is PostgreSQL's code for a role, or an address, that may not log in.
const notAuthorized = "28000"

// refusalAdvice is what to do when a server answered with an error. The codes are
// PostgreSQL's.
func refusalAdvice(config *pgconn.Config, code, passwordFrom string) string {
	switch code {
	case "28P01":
		if passwordFrom != "" {
			return fmt.Sprintf("the password came from %s, which stands instead of any other: correct it there, or the user in RELAY_DATABASE_URL", passwordFrom)
		}
		return "correct RELAY_DATABASE_PASSWORD, or the user and password in RELAY_DATABASE_URL"
	case notAuthorized:
		return "correct the user in RELAY_DATABASE_URL, or let that role log in from here (pg_hba.conf)"
	case "3D000":
		return "correct the database's name in RELAY_DATABASE_URL, or create it"
	case "42501":
		return fmt.Sprintf("grant connect on database %s to %s", quote(config.Database), quote(config.User))
	case "53300":
		return "raise max_connections or the role's limit, or lower RELAY_WORKERS: the relay opens up to RELAY_WORKERS + 4 connections"
	case "57P03":
		return "wait until the server has started"
	case "08P01":
		return "behind a pooler such as PgBouncer set RELAY_DATABASE_POOLED=true, and take options and other run-time parameters out of RELAY_DATABASE_URL"
	default:
		return "correct RELAY_DATABASE_URL"
	}
}

func quote(names ...string) string { return pgx.Identifier(names).Sanitize() }
