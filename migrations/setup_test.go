package migrations

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/waittest"
)

// emptyDatabase is a database in which nothing is.
func emptyDatabase(t *testing.T) *pgtest.DB {
	t.Helper()
	return pgtest.Database(t, pgtest.Setup{Name: "empty"})
}

// role is one without any rights, and with a name that needs quotes.
type role struct{ name, url string }

func newRole(t *testing.T, db *pgtest.DB) role {
	t.Helper()
	address := db.Role(t, `Role "x" y`, "")
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return role{parsed.User.Username(), address}
}

func (r role) conn(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), r.url)
	if err != nil {
		t.Fatalf("connect as %s: %v", r.name, err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func read[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) (value T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// report keeps the steps of a run; it may be read while the run goes on.
type report struct {
	mu    sync.Mutex
	steps []Step
}

func (r *report) add(s Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, s)
}

func (r *report) has(outcome Outcome, detail string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.steps {
		if s.Outcome == outcome && strings.Contains(s.Detail, detail) {
			return true
		}
	}
	return false
}

// outcomes are the last ones told of each object.
func (r *report) outcomes() map[string]Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := map[string]Outcome{}
	for _, s := range r.steps {
		last[s.Name] = s.Outcome
	}
	return last
}

// impatient is a migration with short waiting times.
func impatient(conn *pgx.Conn, options Options) (*migration, *report) {
	r := &report{}
	options.Report = r.add
	m := newMigration(conn, options)
	m.timings.lock = 50 * time.Millisecond
	m.retry = 20 * time.Millisecond
	m.patience = time.Minute
	m.progress = 20 * time.Millisecond
	return m, r
}

// mustRun runs to the end and returns the last outcome of each object.
func mustRun(t *testing.T, conn *pgx.Conn, options Options) map[string]Outcome {
	t.Helper()
	m, r := impatient(conn, options)
	if err := m.run(t.Context(), (*migration).everything); err != nil {
		t.Fatalf("run: %v", err)
	}
	return r.outcomes()
}

// start runs in the background; done gets the run's error.
func (m *migration) start(ctx context.Context) (done chan error) {
	done = make(chan error, 1)
	go func() { done <- m.run(ctx, (*migration).everything) }()
	return done
}

func mustEnd(t *testing.T, done chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		t.Fatal("the run has not ended after a minute")
		return nil
	}
}

// eventually waits until the condition holds, and fails with its last error.
func eventually(t *testing.T, condition func() error) {
	t.Helper()
	waittest.Until(t, 30*time.Second, "a condition", condition)
}

func mustContain(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

func wantState(t *testing.T, conn *pgx.Conn, schema string, want State) {
	t.Helper()
	state, err := IndexState(t.Context(), conn, schema)
	if err != nil || state != want {
		t.Fatalf("index state: %v, %v; want %v", state, err, want)
	}
}

// appendEvents writes n events of a new operation the way an application does, as the connected role.
func appendEvents(ctx context.Context, conn *pgx.Conn, schema string, n int) error {
	for _, text := range []string{
		`select set_config('aksara.current_tenant_id', 'acme', false)`,
		`with o as (insert into :"schema".aksara_operations (application_namespace, tenant_scope, state_version)
		            values ('shop', 'acme', ` + fmt.Sprint(n) + `) returning id),
		      t as (insert into :"schema".aksara_operation_transitions (operation_id, tenant_scope, state_version, event, to_state)
		            select id, 'acme', v, 'moved', 'ready' from o, generate_series(1, ` + fmt.Sprint(n) + `) v
		            returning id, operation_id, state_version)
		 insert into :"schema".aksara_operation_outbox (operation_id, tenant_scope, transition_id, payload)
		 select operation_id, 'acme', id, jsonb_build_object('operation_id', operation_id, 'state_version', state_version) from t`,
	} {
		if _, err := conn.Exec(ctx, newDDL(schema, "").names.Replace(text)); err != nil {
			return err
		}
	}
	return nil
}

var errNotYet = errors.New("not yet")

// outcomesOf are the steps told with an outcome.
func (r *report) outcomesOf(outcome Outcome) (steps []Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.steps {
		if s.Outcome == outcome {
			steps = append(steps, s)
		}
	}
	return steps
}
