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

// unreachable tells why there is no connection, and which setting to look at.
func (s *Store) unreachable(ctx context.Context, err error) relay.Finding {
	f := relay.Finding{Check: "database", Level: relay.Fail}
	config, configErr := s.connConfig(ctx)
	if configErr != nil {
		f.Seen = "the credentials can't be read: " + configErr.Error()
		f.Do = "make the files that RELAY_DATABASE_URL_FILE and RELAY_DATABASE_PASSWORD_FILE name readable"
		return f
	}
	f.Seen = fmt.Sprintf("no connection to %s, database %q, as %q: %s", addresses(config), config.Database, config.User, cause(ctx, err))
	f.Do = connectAdvice(config, err)
	return f
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
func addresses(config *pgx.ConnConfig) string {
	all := []string{address(config.Host, config.Port)}
	for _, f := range config.Fallbacks {
		if a := address(f.Host, f.Port); !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return strings.Join(all, ", ")
}

func address(host string, port uint16) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

// cause is an error of the driver in one line, without what the finding says already.
func cause(ctx context.Context, err error) string {
	var connect *pgconn.ConnectError
	text := explain(ctx, err)
	if errors.As(err, &connect) && connect.Unwrap() != nil {
		text = connect.Unwrap()
	}
	return strings.ReplaceAll(text.Error(), "\n", "; ")
}

// connectAdvice is what to do about a connection that was not made.
func connectAdvice(config *pgx.ConnConfig, err error) string {
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) {
		return refusalAdvice(config, refusal.Code)
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

// refusalAdvice is what to do when a server answered with an error. The codes are
// PostgreSQL's.
func refusalAdvice(config *pgx.ConnConfig, code string) string {
	switch code {
	case "28P01":
		return "correct RELAY_DATABASE_PASSWORD, or the user and password in RELAY_DATABASE_URL"
	case "28000":
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
