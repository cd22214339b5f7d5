package store

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"outboxrelay/relay"
)

const (
	connectTimeout = 5 * time.Second
	// callTimeout bounds each claim and each settlement, on both sides. The server's
	// limit comes first, so that a slow statement ends there and the connection is kept.
	callTimeout   = 10 * time.Second
	serverTimeout = 9 * time.Second
	// lockTimeout bounds each wait for a lock: a connection that waits is one that others need.
	lockTimeout   = 2 * time.Second
	rollbackLimit = 2 * time.Second
)

// timings are a store's limits and periods. Tests shorten them.
type timings struct {
	call, server, lock time.Duration // see callTimeout, serverTimeout and lockTimeout
	indexLook          time.Duration
}

func defaultTimings() timings {
	return timings{call: callTimeout, server: serverTimeout, lock: lockTimeout, indexLook: indexLook}
}

// Config is how a store reaches its database.
type Config struct {
	// URL is a connection string as libpq takes it; empty: libpq's PG* variables. With
	// several hosts, one that accepts writes is taken.
	URL string
	// BeforeConnect, if not nil, may change how each new connection is made: that is
	// where credentials from files are read again.
	BeforeConnect func(context.Context, *pgx.ConnConfig) error
	// PasswordFrom is the setting that gave the password, for the message when that is refused; empty if it isn't known.
	PasswordFrom string
	// Schema is where the Aksara tables are.
	Schema string
	// Pooled is for a transaction pooler between the store and the database: no
	// prepared statement outlives its transaction.
	Pooled bool
	// Durable has commits survive a crash of the server, whatever is usual for the role:
	// synchronous_commit is on at least.
	Durable bool
	// Connections is the most that are open at once; 0 stands for 10.
	Connections int
	// Dial, if not nil, makes the network connections, in place of a net.Dialer.
	Dial pgconn.DialFunc
}

// Store implements [relay.Store] on PostgreSQL. It is safe for concurrent use.
type Store struct {
	pool    *pgxpool.Pool
	schema  string
	durable bool // see Config
	sql     statements
	timings timings
	index   indexWatch
	walks   walks

	passwordFrom string // see Config

	mu     sync.Mutex
	claims map[claimKey]string // claim texts by row limit and variant
}

type claimKey struct {
	rows                             int
	abandoned, exact, gated, indexed bool
}

var _ relay.Store = (*Store)(nil)

// Open makes a store. It connects when a call first needs it, so a database that is
// away is no error here; a connection string that can't be parsed is.
func Open(cfg Config) (*Store, error) { return open(cfg, defaultTimings()) }

func open(cfg Config, timings timings) (*Store, error) {
	poolConfig, err := poolConfig(cfg, timings)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), poolConfig)
	if err != nil {
		return nil, fmt.Errorf("database settings: %w", err)
	}
	return &Store{
		pool: pool, schema: cfg.Schema, durable: cfg.Durable, sql: newStatements(cfg.Schema, cfg.Durable), timings: timings,
		claims: map[claimKey]string{}, walks: newWalks(), passwordFrom: cfg.PasswordFrom,
	}, nil
}

func poolConfig(cfg Config, timings timings) (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("database settings: %w", err) // pgx masks the password
	}
	pc.MaxConns = int32(cfg.Connections)
	if pc.MaxConns == 0 {
		pc.MaxConns = 10
	}
	pc.BeforeConnect = cfg.BeforeConnect
	pc.MaxConnLifetime = time.Hour
	pc.MaxConnLifetimeJitter = 10 * time.Minute
	cc := pc.ConnConfig
	cc.ConnectTimeout = connectTimeout
	if cfg.Dial != nil {
		cc.DialFunc = cfg.Dial
	}
	if cc.RuntimeParams["application_name"] == "" {
		cc.RuntimeParams["application_name"] = "relay"
	}
	if len(cc.Fallbacks) > 0 && cc.ValidateConnect == nil {
		cc.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if cc.RuntimeParams["statement_timeout"] == "" && !cfg.Pooled {
		// For what happens outside the transactions that set it: preparing a statement
		// waits for a table's lock as well. A pooler may refuse to be told.
		cc.RuntimeParams["statement_timeout"] = milliseconds(timings.server)
	}
	if cfg.Pooled {
		// Unnamed statements only: a named one belongs to a server connection, and the
		// pooler hands those out by the transaction.
		cc.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	return pc, nil
}

// Close ends all connections, after the calls in progress.
func (s *Store) Close() { s.pool.Close() }

// Pool statistics and connections for the program's own queries.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// claimText gives the statement of one kind, always the same string so that pgx prepares
// it once a connection.
func (s *Store) claimText(key claimKey) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.claims[key]
	if !ok {
		text = s.sql.claimText(key)
		s.claims[key] = text
	}
	return text
}
