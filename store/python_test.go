package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"outboxrelay/envelope"
	"outboxrelay/internal/aksaratest"
	"outboxrelay/relay"
)

// python speaks the protocol of Aksara's own exporter: one row a claim, by id, locking
// the operation as well. Its role may do that.
type python struct {
	pool   *pgxpool.Pool
	worker string
	lease  time.Duration
	retry  time.Duration
}

func (f *fixture) python(worker string, lease time.Duration) python {
	return python{pool: f.admin, worker: worker, lease: lease}
}

// claim takes one row; ok is false if there is none.
func (p python) claim(ctx context.Context, scope envelope.Scope) (id int64, operation uuid.UUID, ok bool, err error) {
	const claim = `
		with candidate as (
		  select o.id
		  from aksara_operation_outbox o
		  join aksara_operations op on op.id = o.operation_id
		  where o.tenant_scope = $1 and op.application_namespace = $2
		    and o.exported_at is null and o.next_attempt_at <= clock_timestamp()
		    and (o.claim_expires_at is null or o.claim_expires_at <= clock_timestamp())
		  order by o.id
		  limit 1
		  for update skip locked
		)
		update aksara_operation_outbox o
		set claimed_by = $3, claim_expires_at = clock_timestamp() + $4 * interval '1 second',
		    export_attempts = o.export_attempts + 1
		from candidate
		where o.id = candidate.id
		returning o.id, o.operation_id`
	err = p.inScope(ctx, scope, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, claim, scope.Stored(), namespace, p.worker, p.lease.Seconds()).Scan(&id, &operation)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, operation, false, nil
	}
	return id, operation, err == nil, err
}

// exported marks a row; it is false if the row is no longer this worker's.
func (p python) exported(ctx context.Context, scope envelope.Scope, id int64) (bool, error) {
	return p.write(ctx, scope, `
		update aksara_operation_outbox
		set exported_at = clock_timestamp(), claimed_by = null, claim_expires_at = null, last_error = null
		where id = $1 and tenant_scope = $2 and claimed_by = $3 and exported_at is null`, id, scope.Stored(), p.worker)
}

func (p python) failed(ctx context.Context, scope envelope.Scope, id int64) (bool, error) {
	return p.write(ctx, scope, `
		update aksara_operation_outbox
		set claimed_by = null, claim_expires_at = null, last_error = 'broken sink',
		    next_attempt_at = clock_timestamp() + $4 * interval '1 second'
		where id = $1 and tenant_scope = $2 and claimed_by = $3 and exported_at is null`,
		id, scope.Stored(), p.worker, p.retry.Seconds())
}

func (p python) write(ctx context.Context, scope envelope.Scope, sql string, args ...any) (done bool, err error) {
	err = p.inScope(ctx, scope, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sql, args...)
		done = tag.RowsAffected() == 1
		return err
	})
	return done, err
}

func (p python) inScope(ctx context.Context, scope envelope.Scope, do func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select set_config('aksara.current_tenant_id', $1, true)", scope.Stored()); err != nil {
			return err
		}
		return do(tx)
	})
}

func TestClaimRespectsPython(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		rows := f.fill(t, scope, 2, 3)
		py := f.python("py-1", time.Minute)
		held, _, ok, err := py.claim(t.Context(), scope)
		if err != nil || !ok || held != rows[0][0] {
			t.Fatalf("python claimed %d, %t, %v, want the first row", held, ok, err)
		}
		claim := f.claim(t, scope)
		if got := ids(claim); !slices.Equal(got, rows[1]) {
			t.Errorf("claimed %d beside python, want %d", got, rows[1])
		}
		if done, err := py.exported(t.Context(), scope, held); err != nil || !done {
			t.Errorf("python's mark: %t, %v", done, err)
		}
		if got := ids(f.claim(t, scope)); !slices.Equal(got, rows[0][1:]) {
			t.Errorf("claimed %d after python's mark, want %d", got, rows[0][1:])
		}
	})
}

func TestPythonRespectsClaims(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		rows := f.fill(t, scope, 1, 1)[0]
		claim := f.claim(t, scope)
		py := f.python("py-1", time.Minute)
		if id, _, ok, err := py.claim(t.Context(), scope); ok || err != nil {
			t.Errorf("python claimed %d, %v, want none", id, err)
		}
		if done, err := py.exported(t.Context(), scope, rows[0]); done || err != nil {
			t.Errorf("python marked a row of ours: %v", err)
		}
		f.settle(t, claim, relay.Verdict{Wait: relay.KeepDue, Refund: true})
		if id, _, ok, err := py.claim(t.Context(), scope); !ok || err != nil {
			t.Errorf("python claimed %d, %t, %v after it was given back", id, ok, err)
		}
	})
}

// The framework's own exporter, in a process of its own, holds a row in its sink.
func TestClaimRespectsTheRealExporter(t *testing.T) {
	t.Parallel()
	f := newFixture(t, aksara())
	scope := tenant(t, "acme")
	operations := aksaratest.Generate(t, f.db.URL, aksaratest.GenerateOptions{
		Namespace: namespace, Scopes: []string{"acme"}, Counts: map[aksaratest.Kind]int{aksaratest.Success: 1, aksaratest.Retry: 1}, Lanes: 1,
	})
	exporter := aksaratest.StartExporter(t, f.db.URL, aksaratest.ExporterOptions{
		Namespace: namespace, Scope: "acme", WorkerID: "py-1", Calls: 1, Hold: true,
	})
	exporter.WaitObserved(1)
	held := value[string](t, f, "select operation_id::text from aksara_operation_outbox where claimed_by = 'py-1'")

	claim := f.claim(t, scope)
	want := 0
	for _, operation := range operations {
		if operation.ID != held {
			want += len(operation.Transitions)
		}
	}
	for _, row := range claim.Rows {
		if row.OperationID.String() == held {
			t.Errorf("row %d of the operation that the exporter holds was claimed", row.ID)
		}
		checkPayload(t, f, row)
	}
	if len(claim.Rows) != want {
		t.Errorf("claimed %d rows, want all %d of the other operation", len(claim.Rows), want)
	}
	exporter.Release()
	if seen := exporter.Wait(); len(seen) != 1 || !seen[0].Exported {
		t.Errorf("the exporter's call: %+v, want one that exported", seen)
	}
	rest := f.claim(t, scope)
	if len(claim.Rows)+len(rest.Rows) != value[int](t, f, "select count(*) - 1 from aksara_operation_outbox") {
		t.Errorf("claimed %d and then %d rows", len(claim.Rows), len(rest.Rows))
	}
}

// checkPayload compares a row of the framework's making with the transition it tells of.
func checkPayload(t *testing.T, f *fixture, row relay.Row) {
	t.Helper()
	same := value[bool](t, f, `select $2::jsonb = jsonb_build_object('operation_id', t.operation_id, 'state_version', t.state_version,
		'from_state', t.from_state, 'event', t.event, 'to_state', t.to_state, 'reason_code', t.reason_code, 'attempt_id', t.attempt_id)
		from aksara_operation_outbox o join aksara_operation_transitions t on t.id = o.transition_id where o.id = $1`, row.ID, string(row.Payload))
	if !same {
		t.Errorf("row %d: payload %s does not tell of its transition", row.ID, row.Payload)
	}
}
