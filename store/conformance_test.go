package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"outboxrelay/envelope"
	"outboxrelay/relay/relaytest"
)

// TestConformance holds the store against the comments of its port.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			relaytest.ExerciseStore(t, func(t *testing.T) relaytest.Outbox { return &outbox{newFixture(t, v), t} })
		})
	}
}

// outbox implements [relaytest.Outbox] behind the store's back, as superuser.
type outbox struct {
	*fixture
	t *testing.T
}

func (o *outbox) Add(namespace string, scope envelope.Scope, operation uuid.UUID, n int) {
	o.t.Helper()
	id, _ := scope.Tenant()
	o.exec(o.t, `insert into aksara_operations (id, application_namespace, tenant_id, tenant_scope)
		values ($1, $2, nullif($3, ''), $4) on conflict (id) do nothing`, operation, namespace, id, scope.Stored())
	o.exec(o.t, `with t as (
		  insert into aksara_operation_transitions (operation_id, tenant_scope, state_version, event, to_state)
		  select $1, $2, version, 'admitted', 'ready'
		  from (select coalesce(max(state_version), 0) as last from aksara_operation_transitions where operation_id = $1) done,
		       generate_series(done.last + 1, done.last + $3) version
		  order by version
		  returning *)
		insert into aksara_operation_outbox (operation_id, tenant_scope, transition_id, payload)
		select t.operation_id, t.tenant_scope, t.id,
		       jsonb_build_object('operation_id', t.operation_id, 'state_version', t.state_version)
		from t order by t.id`, operation, scope.Stored(), n)
}

func (o *outbox) Rows(scope envelope.Scope) []relaytest.Stored {
	o.t.Helper()
	rows, err := o.admin.Query(o.t.Context(), `
		select o.id, op.application_namespace, o.operation_id, t.state_version, o.topic, o.payload, o.created_at,
		       o.export_attempts, coalesce(nullif(o.next_attempt_at, 'infinity'), 'epoch'), o.next_attempt_at = 'infinity',
		       coalesce(o.claimed_by, ''), o.claim_expires_at, o.exported_at is not null, coalesce(o.last_error, '')
		from aksara_operation_outbox o
		join aksara_operations op on op.id = o.operation_id
		join aksara_operation_transitions t on t.id = o.transition_id
		where o.tenant_scope = $1
		order by o.id`, scope.Stored())
	if err != nil {
		o.t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r relaytest.Stored, err error) {
		var expires *time.Time
		r.Scope = scope
		err = row.Scan(&r.ID, &r.Namespace, &r.Operation, &r.Version, &r.Type, &r.Payload, &r.Created,
			&r.Attempts, &r.Due, &r.Parked, &r.ClaimedBy, &expires, &r.Exported, &r.LastError)
		if expires != nil {
			r.Expires = *expires
		}
		return r, err
	})
	if err != nil {
		o.t.Fatal(err)
	}
	return list
}

func (o *outbox) Seize(id int64, by string, lease time.Duration) {
	o.t.Helper()
	o.exec(o.t, `update aksara_operation_outbox set claimed_by = $2, claim_expires_at = clock_timestamp() + $3 * interval '1 second'
		where id = $1`, id, by, lease.Seconds())
}

func (o *outbox) Now() time.Time {
	o.t.Helper()
	return value[time.Time](o.t, o.fixture, "select clock_timestamp()")
}

// Pass moves leases and due times back instead of the clock forward. What comes due by
// it is due now, not earlier: a store may rely on that no row comes due in the past.
func (o *outbox) Pass(d time.Duration) {
	o.t.Helper()
	o.exec(o.t, `update aksara_operation_outbox
		set claim_expires_at = claim_expires_at - $1 * interval '1 second',
		    next_attempt_at = case when next_attempt_at <= clock_timestamp() then next_attempt_at
		                           else greatest(next_attempt_at - $1 * interval '1 second', clock_timestamp()) end`, d.Seconds())
}
