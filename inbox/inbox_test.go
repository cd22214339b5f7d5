package inbox_test

import (
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"outboxrelay/envelope"
	"outboxrelay/inbox"
	"outboxrelay/internal/pgtest"
)

func TestEachEventOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t, setup).Pool(t)
	acme, operation := tenant(t, "acme"), uuid.New()
	for _, step := range []struct {
		version int64
		want    inbox.Outcome
	}{
		{2, inbox.Fresh}, // earlier ones may have been before this consumer
		{2, inbox.Duplicate},
		{3, inbox.Fresh},
		{7, inbox.Fresh}, // 4 to 6 were given up, or come later
		{5, inbox.Stale},
		{5, inbox.Duplicate},
		{1, inbox.Stale},
		{4, inbox.Stale},
		{3, inbox.Duplicate},
		{7, inbox.Duplicate},
		{8, inbox.Fresh},
		{math.MaxInt64, inbox.Fresh},
		{math.MaxInt64, inbox.Duplicate},
		{math.MaxInt64 - 1, inbox.Stale},
		{1, inbox.Duplicate},
	} {
		expect(t, pool, event(t, acme, operation, step.version), step.want)
	}
}

// An event is the same only with the same source and id, to the byte, and for the same consumer.
func TestEventsOfOthersAreOthers(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t, setup).Pool(t)
	operation := uuid.New()
	longest := strings.Repeat("ü", envelope.MaxTenantBytes/2) // whose source no index could hold
	for _, scope := range []envelope.Scope{
		tenant(t, "acme"), tenant(t, "Acme"), tenant(t, "acme "), tenant(t, "ä"), tenant(t, "a\u0308"), envelope.NonTenant(),
		tenant(t, longest), tenant(t, longest[2:]+"u"),
	} {
		expect(t, pool, event(t, scope, operation, 1), inbox.Fresh)
		expect(t, pool, event(t, scope, operation, 1), inbox.Duplicate)
	}
	for _, name := range []string{"shipping", "Billing", "billing ", strings.Repeat("n", 255)} {
		tx := begin(t, pool, pgx.TxOptions{})
		if got, err := inbox.Take(t.Context(), tx, name, event(t, tenant(t, "acme"), operation, 1)); err != nil || got != inbox.Fresh {
			t.Errorf("consumer %q: %s, %v, want fresh", name, got, err)
		}
	}
}

func TestTakeRefusesWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t, setup).Pool(t)
	good := event(t, envelope.NonTenant(), uuid.New(), 1)
	withoutVersion := good
	withoutVersion.StateVersion = 0
	for name, test := range map[string]struct {
		consumer string
		event    envelope.Event
	}{
		"zero event":       {consumer, envelope.Event{}},
		"no state version": {consumer, withoutVersion},
		"no consumer":      {"", good},
		"long consumer":    {strings.Repeat("n", 256), good},
	} {
		tx := begin(t, pool, pgx.TxOptions{})
		if got, err := inbox.Take(t.Context(), tx, test.consumer, test.event); err == nil || got != 0 {
			t.Errorf("%s: %s, %v, want an error", name, got, err)
		}
	}
}

func TestCreateByManyAtOnceAndAgain(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t, pgtest.Setup{Name: "empty"}).Pool(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := inbox.Create(t.Context(), pool); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	e := event(t, envelope.NonTenant(), uuid.New(), 1)
	take := func(want inbox.Outcome) {
		t.Helper()
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			got, err := inbox.Take(t.Context(), tx, consumer, e)
			if err == nil && got != want {
				t.Errorf("%s, want %s", got, want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	take(inbox.Fresh)
	if err := inbox.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	take(inbox.Duplicate)
}

// The rights that the documentation names are enough to work.
func TestRights(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t, setup)
	address := db.Role(t, "consumer", "")
	db.Exec(t, "grant select, insert, update, delete on relay_inbox to "+pgtest.User(t, address))
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	e := event(t, envelope.NonTenant(), uuid.New(), 1)
	for _, want := range []inbox.Outcome{inbox.Fresh, inbox.Duplicate} {
		err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
			got, err := inbox.Take(t.Context(), tx, consumer, e)
			if err == nil && got != want {
				t.Errorf("%s, want %s", got, want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := inbox.Prune(t.Context(), conn, consumer, time.Hour); err != nil {
		t.Error(err)
	}
}

func TestPruneForgetsOnlyWhatIsOld(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t, setup)
	pool := db.Pool(t)
	scope := tenant(t, "acme")
	old, continued, recent := uuid.New(), uuid.New(), uuid.New()
	for _, operation := range []uuid.UUID{old, continued, recent} {
		expect(t, pool, event(t, scope, operation, 1), inbox.Fresh)
	}
	db.Exec(t, "update relay_inbox set taken_at = taken_at - interval '8 days' where operation = any($1)", []uuid.UUID{old, continued})
	db.Exec(t, "insert into relay_inbox select 'shipping', source, operation, versions, taken_at from relay_inbox")
	expect(t, pool, event(t, scope, continued, 2), inbox.Fresh)

	if _, err := inbox.Prune(t.Context(), pool, consumer, -time.Second); err == nil {
		t.Error("a negative time is taken")
	}
	if n, err := inbox.Prune(t.Context(), pool, consumer, 7*24*time.Hour); err != nil || n != 1 {
		t.Errorf("pruned %d operations, %v, want 1", n, err)
	}
	expect(t, pool, event(t, scope, old, 1), inbox.Fresh) // as the documentation warns
	expect(t, pool, event(t, scope, continued, 1), inbox.Duplicate)
	expect(t, pool, event(t, scope, recent, 1), inbox.Duplicate)
	if n := count(t, db, "select count(*) from relay_inbox where consumer = 'shipping'"); n != 3 {
		t.Errorf("%d operations of another consumer are left, want 3", n)
	}
}
