// Package pgtest gives each test a PostgreSQL database of its own, made in a blink from a template that its package set up
// once.
//
// The server is one for the whole process: the one that RELAY_TEST_POSTGRES names (a superuser's URL), else one in a
// container where a Docker engine answers, else one of this machine's own programs. A test that stops or kills its server
// takes Server instead.
package pgtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// patience bounds each single step here. It is long because a busy machine makes databases slowly.
const patience = time.Minute

// Setup makes the contents of a new database.
type Setup struct {
	// Name tells a package's set-ups apart: two with one name are taken for the same.
	Name string
	// Apply fills the database at url as its superuser, and closes its connections. It runs once in a process for each
	// name. Nil leaves the database empty.
	Apply func(ctx context.Context, url string) error
}

// shared is the process's cluster. It is a package variable because a package's tests share nothing else, and starts
// nothing until the first test asks.
var shared = sync.OnceValues(openCluster)

// DB is a test's own database. It is dropped when the test ends, with whoever is still connected.
type DB struct {
	Name    string
	URL     string // for its superuser
	cluster *cluster
}

// Database makes a database with the contents that setup describes.
func Database(t testing.TB, setup Setup) *DB {
	t.Helper()
	cluster, err := shared()
	if err != nil {
		t.Fatalf("pgtest: no PostgreSQL server for the tests: %v", err)
	}
	name, err := cluster.create(setup)
	if err != nil {
		t.Fatalf("pgtest: database with set-up %q: %v", setup.Name, err)
	}
	t.Cleanup(func() {
		if err := cluster.drop(name); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return &DB{Name: name, URL: cluster.url(name, nil), cluster: cluster}
}

// Conn opens a superuser's connection that is closed when the test ends.
func (db *DB) Conn(t testing.TB) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, db.URL)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		// It may be broken already, and by intent.
		_ = conn.Close(ctx)
	})
	return conn
}

// Pool opens a superuser's pool that is closed when the test ends.
func (db *DB) Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), db.URL)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// Exec runs one statement as superuser on a connection of its own, or several statements if there are no arguments.
func (db *DB) Exec(t testing.TB, sql string, args ...any) pgconn.CommandTag {
	t.Helper()
	tag, err := execute(db.URL, sql, args...)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return tag
}

// execute runs sql on a connection of its own. Without arguments sql may hold several statements, and one that must not be
// in a transaction may stand alone.
func execute(url, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return tag, err
	}
	defer conn.Close(ctx)
	if tag, err = conn.Exec(ctx, sql, args...); err != nil {
		return tag, fmt.Errorf("%s: %w", sql, err)
	}
	return tag, nil
}
