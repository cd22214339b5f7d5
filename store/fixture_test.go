package store_test

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"outboxrelay/envelope"
	"outboxrelay/internal/aksaratest"
	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/sample"
	"outboxrelay/internal/waittest"
	"outboxrelay/migrations"
	"outboxrelay/relay"
	"outboxrelay/store"
)

const (
	namespace = "orders"
	// patience is how long a test waits for what must come: moments, or long on a machine
	// with much else to do.
	patience = 2 * time.Minute
)

var app = sample.Application{Namespace: namespace}

// variant is a kind of schema that a store works on.
type variant struct {
	name    string
	indexed bool // the supporting index is there
	setup   func(testing.TB) pgtest.Setup
}

// variants are the two ways to find an operation's rows, on compatible tables.
func variants() []variant {
	return []variant{
		{"indexed", true, func(testing.TB) pgtest.Setup {
			return pgtest.Setup{Name: "indexed", Apply: func(ctx context.Context, url string) error {
				return migrations.StandaloneSchema(ctx, url, "public")
			}}
		}},
		{"plain", false, func(testing.TB) pgtest.Setup {
			return pgtest.Setup{Name: "plain", Apply: func(ctx context.Context, url string) error {
				return migrations.StandaloneTables(ctx, url, "public")
			}}
		}},
	}
}

// aksara is Aksara's own schema.
func aksara() variant { return variant{"aksara", true, aksaratest.Setup} }

// fixture is a database and a store on it that works with the smallest rights.
type fixture struct {
	*store.Store
	variant
	db    *pgtest.DB
	url   string        // for the store's role
	admin *pgxpool.Pool // the superuser's
}

// each runs a test on both variants.
func each(t *testing.T, test func(*testing.T, *fixture)) {
	t.Helper()
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			test(t, newFixture(t, v))
		})
	}
}

// everywhere runs a test on both variants and on Aksara's own tables.
func everywhere(t *testing.T, test func(*testing.T, *fixture)) {
	t.Helper()
	each(t, test)
	t.Run("aksara", func(t *testing.T) {
		t.Parallel()
		test(t, newFixture(t, aksara()))
	})
}

func newFixture(t testing.TB, v variant) *fixture {
	t.Helper()
	db := pgtest.Database(t, v.setup(t))
	f := &fixture{variant: v, db: db, admin: db.Pool(t)}
	f.url = f.restricted(t)
	f.Store = f.open(t, store.Config{})
	return f
}

// restricted makes a role that has what a relay needs and nothing else.
func (f *fixture) restricted(t testing.TB) (address string) {
	t.Helper()
	address = f.db.Role(t, "relay", "")
	grant(t, f.db.URL, address)
	if !f.indexed {
		f.exec(t, "drop index relay_outbox_operation")
	}
	return address
}

// grant gives the role in address its rights, and the schema what supports a relay.
func grant(t testing.TB, superuser, address string) {
	t.Helper()
	role, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), superuser)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := migrations.Run(t.Context(), conn, migrations.Options{GrantTo: role.User.Username()}); err != nil {
		t.Fatal(err)
	}
}

// open opens a store on the fixture's database; its role is the restricted one unless
// cfg names another.
func (f *fixture) open(t testing.TB, cfg store.Config) *store.Store {
	t.Helper()
	if cfg.URL == "" {
		cfg.URL = f.url
	}
	cfg.Schema = "public"
	s, err := store.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// exec runs a statement as superuser.
func (f *fixture) exec(t testing.TB, sql string, args ...any) int64 {
	t.Helper()
	tag, err := f.admin.Exec(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return tag.RowsAffected()
}

// query reads one column as superuser.
func query[T any](t testing.TB, f *fixture, sql string, args ...any) []T {
	t.Helper()
	rows, err := f.admin.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return values
}

// value reads one value as superuser.
func value[T any](t testing.TB, f *fixture, sql string, args ...any) T {
	t.Helper()
	values := query[T](t, f, sql, args...)
	if len(values) != 1 {
		t.Fatalf("%s: %d rows, want one", sql, len(values))
	}
	return values[0]
}

// session opens a superuser's transaction that ends with the test, if not before.
func (f *fixture) session(t testing.TB) pgx.Tx {
	t.Helper()
	tx, err := f.db.Conn(t).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

func tenant(t testing.TB, id string) envelope.Scope {
	t.Helper()
	scope, err := envelope.Tenant(id)
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

// fill writes operations with the same number of events each, and gives their row ids
// operation by operation.
func (f *fixture) fill(t testing.TB, scope envelope.Scope, operations, versions int) [][]int64 {
	t.Helper()
	return f.fillAs(t, app, scope, operations, versions)
}

func (f *fixture) fillAs(t testing.TB, app sample.Application, scope envelope.Scope, operations, versions int) [][]int64 {
	t.Helper()
	after := value[int64](t, f, "select coalesce(max(id), 0) from aksara_operation_outbox")
	if err := app.Fill(t.Context(), f.admin, scope, operations, versions); err != nil {
		t.Fatal(err)
	}
	return query[[]int64](t, f, `select array_agg(id order by id) from aksara_operation_outbox
		where tenant_scope = $1 and id > $2 group by operation_id order by min(id)`, scope.Stored(), after)
}

// request is one for many rows, with a token of its own.
func request(scope envelope.Scope) relay.Request {
	return relay.Request{
		Namespace: namespace, Scope: scope, Token: "worker/" + uuid.NewString(),
		Lease: time.Minute, Rows: 1000, Bytes: 4 << 20,
	}
}

func (f *fixture) claim(t testing.TB, scope envelope.Scope) relay.Claim {
	t.Helper()
	return f.claimWith(t, request(scope))
}

// abandoned claims one row that a claim which ran out has left behind.
func (f *fixture) abandoned(t testing.TB, scope envelope.Scope) relay.Claim {
	t.Helper()
	f.claim(t, scope) // finds out that there is one
	req := request(scope)
	req.Abandoned = true
	return f.claimWith(t, req)
}

func (f *fixture) claimWith(t testing.TB, req relay.Request) relay.Claim {
	t.Helper()
	claim, err := f.Claim(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return claim
}

// settle gives the same verdict on all rows of a claim.
func (f *fixture) settle(t testing.TB, claim relay.Claim, verdict relay.Verdict) []relay.Result {
	t.Helper()
	results, err := f.Settle(t.Context(), claim, onAll(claim, verdict))
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func onAll(claim relay.Claim, verdict relay.Verdict) []relay.Verdict {
	verdicts := make([]relay.Verdict, len(claim.Rows))
	for i := range claim.Rows {
		verdicts[i] = verdict
		verdicts[i].Row = &claim.Rows[i]
	}
	return verdicts
}

func ids(claim relay.Claim) []int64 {
	list := make([]int64, len(claim.Rows))
	for i, row := range claim.Rows {
		list[i] = row.ID
	}
	return list
}

// eventually waits until condition is nil.
func eventually(t testing.TB, what string, condition func() error) {
	t.Helper()
	waittest.Until(t, patience, what, condition)
}

// awaitBlocked waits until a session of the store waits for a lock.
func (f *fixture) awaitBlocked(t testing.TB) {
	t.Helper()
	eventually(t, "a statement of the store waits for a lock", func() error {
		if n := value[int](t, f, `select count(*) from pg_stat_activity where datname = current_database()
			and application_name = 'relay' and wait_event_type = 'Lock'`); n == 0 {
			return fmt.Errorf("none does")
		}
		return nil
	})
}
