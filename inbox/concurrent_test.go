package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"outboxrelay/envelope"
	"outboxrelay/inbox"
	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/relayproc"
)

var levels = []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable}

// answer is what a second transaction gets.
type answer struct {
	outcome inbox.Outcome
	err     error
}

// second handles an event on a connection of its own while first is open, and returns when the server says that it waits.
// Its snapshot is from before that.
func second(t *testing.T, db *pgtest.DB, level pgx.TxIsoLevel, e envelope.Event) <-chan answer {
	t.Helper()
	conn := db.Conn(t)
	answers := make(chan answer, 1)
	go func() {
		outcome, err := once(context.Background(), conn, pgx.TxOptions{IsoLevel: level}, e)
		answers <- answer{outcome, err}
	}()
	untilWaiting(t, db, conn)
	return answers
}

// untilWaiting returns when the server says that a connection waits for another's transaction.
func untilWaiting(t *testing.T, db *pgtest.DB, conn *pgx.Conn) {
	t.Helper()
	watch := db.Conn(t)
	relayproc.Until(t, "the second transaction to wait for the first", func() error {
		var waits bool
		err := watch.QueryRow(t.Context(), "select cardinality(pg_blocking_pids($1)) > 0", conn.PgConn().PID()).Scan(&waits)
		if err == nil && !waits {
			err = errors.New("it does not wait")
		}
		return err
	})
}

// Two members of a consumer group take events of one operation at the same time.
func TestSecondWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	for _, level := range levels {
		for _, known := range []bool{false, true} {
			for _, commits := range []bool{false, true} {
				for _, version := range []int64{2, 3, 4} {
					t.Run(fmt.Sprintf("%s, operation known %t, first commits %t, version %d", level, known, commits, version), func(t *testing.T) {
						t.Parallel()
						secondWaits(t, level, known, commits, version)
					})
				}
			}
		}
	}
}

func secondWaits(t *testing.T, level pgx.TxIsoLevel, known, commits bool, version int64) {
	db := pgtest.Database(t, setup)
	conn := db.Conn(t)
	acme, operation := tenant(t, "acme"), uuid.New()
	if known {
		expect(t, conn, event(t, acme, operation, 1), inbox.Fresh)
	}
	tx := begin(t, conn, pgx.TxOptions{IsoLevel: level})
	if got, err := handle(t.Context(), tx, consumer, event(t, acme, operation, 3)); err != nil || got != inbox.Fresh {
		t.Fatalf("first: %s, %v", got, err)
	}
	other := event(t, acme, operation, version)
	answers := second(t, db, level, other)
	end, want := tx.Rollback, inbox.Fresh
	if commits {
		end, want = tx.Commit, map[int64]inbox.Outcome{2: inbox.Stale, 3: inbox.Duplicate, 4: inbox.Fresh}[version]
	}
	if err := end(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := <-answers
	if commits && level != pgx.ReadCommitted {
		var refused *pgconn.PgError
		if !errors.As(got.err, &refused) || refused.Code != "40001" {
			t.Fatalf("second: %s, %v, want SQLSTATE 40001", got.outcome, got.err)
		}
		expect(t, conn, other, want) // begun again
		return
	}
	if got.err != nil || got.outcome != want {
		t.Errorf("second: %s, %v, want %s", got.outcome, got.err, want)
	}
}

// A wait for another transaction ends with the context, and then nothing was taken.
func TestWaitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t, setup)
	e := event(t, envelope.NonTenant(), uuid.New(), 1)
	conn := db.Conn(t)
	tx := begin(t, conn, pgx.TxOptions{})
	if _, err := handle(t.Context(), tx, consumer, e); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	other := db.Conn(t)
	impatient := begin(t, other, pgx.TxOptions{})
	ended := make(chan error, 1)
	go func() {
		_, err := inbox.Take(ctx, impatient, consumer, e)
		ended <- err
	}()
	untilWaiting(t, db, other)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, conn, e, inbox.Fresh)
}

func TestRollbackTakesNothing(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t, setup)
	conn := db.Conn(t)
	operation := uuid.New()
	first, next := event(t, envelope.NonTenant(), operation, 1), event(t, envelope.NonTenant(), operation, 2)

	// The consumer fails after it has taken the event.
	failure := errors.New("the consumer's own")
	err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		_, err := handle(t.Context(), tx, consumer, first)
		return errors.Join(err, failure)
	})
	if !errors.Is(err, failure) {
		t.Fatal(err)
	}
	// Its process ends, here as the server sees it.
	crashing := db.Conn(t)
	if _, err := handle(t.Context(), begin(t, crashing, pgx.TxOptions{}), consumer, first); err != nil {
		t.Fatal(err)
	}
	db.Exec(t, "select pg_terminate_backend($1, 60000)", crashing.PgConn().PID())
	// A savepoint is rolled back, and the rest is committed.
	err = pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		if outcome, err := handle(t.Context(), tx, consumer, next); err != nil || outcome != inbox.Fresh {
			t.Errorf("before the savepoint: %s, %v", outcome, err)
		}
		err := pgx.BeginFunc(t.Context(), tx, func(inner pgx.Tx) error {
			outcome, err := handle(t.Context(), inner, consumer, first)
			if outcome != inbox.Stale {
				t.Errorf("behind the savepoint: %s, want stale", outcome)
			}
			return errors.Join(err, failure)
		})
		if !errors.Is(err, failure) {
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, conn, first, inbox.Stale)
	expect(t, conn, next, inbox.Duplicate)
	if n := count(t, db, "select count(*) from handled"); n != 2 {
		t.Errorf("%d events were handled, want 2", n)
	}
}

// Ten thousand events and as many duplicates, in a random order, go to several members of a group at once. Their
// transactions take several events each, at any isolation level, and some are rolled back; what fails is begun again.
// Each event is handled exactly once, and is stale exactly if a newer one of its operation was handled before it.
func TestTenThousandEventsUnderConcurrency(t *testing.T) {
	t.Parallel()
	const operations, versions, members = 500, 20, 6
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	db := pgtest.Database(t, setup)
	// Waiting crosswise is what the batches here do much of; a server looks for that after a second otherwise.
	db.Exec(t, "alter database "+db.Name+" set deadlock_timeout = '20ms'")
	// The order of commits that touch one operation, as an effect of the consumer sees it.
	db.Exec(t, `create table latest (operation uuid primary key, version bigint not null);
		create table history (n bigserial, operation uuid, version bigint, outcome text);`)
	var events []envelope.Event
	scopes := []envelope.Scope{tenant(t, "acme"), tenant(t, "globex"), envelope.NonTenant()}
	for i := range operations {
		operation := uuid.New()
		for v := range versions {
			e := event(t, scopes[i%len(scopes)], operation, int64(v+1))
			events = append(events, e, e)
		}
	}
	random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	var batches [][]envelope.Event
	for len(events) > 0 {
		n := min(1+random.IntN(20), len(events))
		batches, events = append(batches, events[:n]), events[n:]
	}

	work := make(chan int)
	pool := db.Pool(t)
	var all sync.WaitGroup
	var again atomic.Int64
	for member := range members {
		dice := rand.New(rand.NewPCG(seed, uint64(member+1)))
		all.Go(func() {
			for i := range work {
				level := levels[dice.IntN(len(levels))]
				fails := dice.IntN(4) == 0
				for {
					err := takeAll(t.Context(), pool, level, batches[i], fails)
					if err == nil {
						break
					}
					var refused *pgconn.PgError
					if !errors.Is(err, errCrash) && (!errors.As(err, &refused) || !slices.Contains([]string{"40001", "40P01"}, refused.Code)) {
						t.Error(err)
						break
					}
					fails = false
					again.Add(1)
				}
			}
		})
	}
	for i := range batches {
		work <- i
	}
	close(work)
	all.Wait()
	t.Logf("%d transactions, %d times begun again", len(batches), again.Load())

	if n := count(t, db, "select count(*) from history"); n != operations*versions {
		t.Errorf("%d events were handled, want %d", n, operations*versions)
	}
	if n := count(t, db, "select count(*) from (select from history group by operation, version having count(*) > 1) twice"); n > 0 {
		t.Errorf("%d events were handled twice", n)
	}
	if n := count(t, db, `select count(*) from history h where (outcome = 'stale') <> exists (
		select from history earlier where earlier.operation = h.operation and earlier.n < h.n and earlier.version > h.version)`); n > 0 {
		t.Errorf("%d events have the wrong outcome", n)
	}
	if n := count(t, db, "select count(*) from latest where version <> $1", versions); n > 0 {
		t.Errorf("%d operations went back in time", n)
	}
	if n := count(t, db, "select count(*) from relay_inbox where versions = nummultirange(numrange(1, $1))", versions+1); n != operations {
		t.Errorf("the inbox holds %d operations with all their versions in one range, want %d", n, operations)
	}
}

var errCrash = errors.New("rolled back on purpose")

// takeAll handles a batch in one transaction.
func takeAll(ctx context.Context, pool beginner, level pgx.TxIsoLevel, batch []envelope.Event, fails bool) error {
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
		for _, e := range batch {
			outcome, err := inbox.Take(ctx, tx, consumer, e)
			if err != nil {
				return err
			}
			if outcome == inbox.Duplicate {
				continue
			}
			_, err = tx.Exec(ctx, "insert into history (operation, version, outcome) values ($1, $2, $3)", e.OperationID, e.StateVersion, outcome.String())
			if err == nil && outcome == inbox.Fresh {
				_, err = tx.Exec(ctx, `insert into latest values ($1, $2)
					on conflict (operation) do update set version = excluded.version`, e.OperationID, e.StateVersion)
			}
			if err != nil {
				return err
			}
		}
		if fails {
			return errCrash
		}
		return nil
	})
}
