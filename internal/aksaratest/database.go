package aksaratest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/pgtest"
)

// Migrate lets Aksara create its tables in the database at databaseURL, whose role must be able to. A schema other than ""
// is created first if it isn't there, and gets the tables; use WithSchema for the calls that follow.
func Migrate(t testing.TB, databaseURL, schema string) {
	t.Helper()
	if schema != "" {
		databaseURL = WithSchema(t, databaseURL, schema)
	}
	if err := migrate(t.Context(), databaseURL, schema); err != nil {
		t.Fatalf("aksaratest: %v", err)
	}
}

// Setup makes databases with Aksara's tables in schema public, as Migrate does, for pgtest.Database.
func Setup(t testing.TB) pgtest.Setup {
	t.Helper()
	// Done here because a set-up has less time than this may take on a new machine.
	Install(t)
	return pgtest.Setup{
		Name:  "aksara",
		Apply: func(ctx context.Context, url string) error { return migrate(ctx, url, "") },
	}
}

func migrate(ctx context.Context, databaseURL, schema string) error {
	_, err := runScript[struct{}](ctx, "migrate", map[string]any{"url": databaseURL, "schema": schema})
	return err
}

// quoteIdentifier writes a name as SQL and the search_path setting read it.
func quoteIdentifier(name string) string { return pgx.Identifier{name}.Sanitize() }

// PruneOptions says what Aksara's own retention works on.
type PruneOptions struct {
	Namespace string
	Scope     string // a tenant id or NonTenant
	History   int    // newest transitions of an operation that stay; 0 means Aksara's default, 100
}

// Pruned counts the rows that a prune removed itself. Rows that went with them by cascade aren't counted.
type Pruned struct {
	Outbox      int `json:"outbox"`
	Transitions int `json:"transitions"`
	Operations  int `json:"operations"`
}

// Prune runs Aksara's retention once over one scope.
func Prune(t testing.TB, databaseURL string, options PruneOptions) Pruned {
	t.Helper()
	if options.History == 0 {
		options.History = 100
	}
	return mustRun[Pruned](t, "prune", map[string]any{
		"url":       databaseURL,
		"namespace": options.Namespace,
		"scope":     options.Scope,
		"history":   options.History,
	})
}

// OperationState is what an operation is at some moment. Nothing that exports events may change it.
type OperationState struct {
	ID           string
	State        string
	StateVersion int64
}

// OperationsState returns the state of all operations of all scopes, ordered by id, to compare before and after. The role
// must bypass row security.
func OperationsState(t testing.TB, databaseURL string) []OperationState {
	t.Helper()
	states, err := operationsState(t.Context(), databaseURL)
	if err != nil {
		t.Fatalf("aksaratest: read the operations' states: %v", err)
	}
	return states
}

func operationsState(ctx context.Context, databaseURL string) ([]OperationState, error) {
	connection, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return nil, err
	}
	defer connection.Close(ctx)
	// A policy would hide rows in silence: with this setting it is an error.
	if _, err := connection.Exec(ctx, "SET row_security = off"); err != nil {
		return nil, err
	}
	rows, err := connection.Query(ctx, "SELECT id::text, state, state_version FROM aksara_operations ORDER BY id")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[OperationState])
}
