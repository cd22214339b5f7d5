// Package sample writes transitions of operations the way an application on Aksara
// does: each in a transaction that also changes the operation, under the scope's row
// security setting. The demo, the benchmark and tests use it.
package sample

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"outboxrelay/envelope"
)

// Application is an application's name and where its tables are.
type Application struct {
	Namespace string
	Schema    string // "" stands for public
}

func (a Application) table(name string) string {
	schema := a.Schema
	if schema == "" {
		schema = "public"
	}
	return pgx.Identifier{schema, name}.Sanitize()
}

// Beginner is a connection or a pool.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// inScope runs do in a transaction of the scope.
func inScope(ctx context.Context, db Beginner, scope envelope.Scope, do func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select set_config('aksara.current_tenant_id', $1, true)", scope.Stored()); err != nil {
			return err
		}
		return do(tx)
	})
}

// Admit writes a new operation and its first transition.
func (a Application) Admit(ctx context.Context, db Beginner, scope envelope.Scope) (operation uuid.UUID, err error) {
	operation = uuid.New()
	err = inScope(ctx, db, scope, func(tx pgx.Tx) error {
		if err := a.insertOperations(ctx, tx, scope, []uuid.UUID{operation}, 1); err != nil {
			return err
		}
		return a.insertTransition(ctx, tx, scope, operation, 1, "", "admitted", "ready")
	})
	return operation, err
}

// Advance writes the next transition of an operation: its event, and the state that
// it leads to.
func (a Application) Advance(ctx context.Context, db Beginner, scope envelope.Scope, operation uuid.UUID, event, to string) error {
	return inScope(ctx, db, scope, func(tx pgx.Tx) error {
		var from string
		var version int64
		err := tx.QueryRow(ctx, `select state, state_version from `+a.table("aksara_operations")+` where id = $1 for update`,
			operation).Scan(&from, &version)
		if err != nil {
			return fmt.Errorf("lock operation: %w", err)
		}
		// A running operation would need an attempt; the state's name is enough here.
		_, err = tx.Exec(ctx, `update `+a.table("aksara_operations")+
			` set state_version = $2, updated_at = clock_timestamp(), state = case when $3 = 'running' then state else $3 end where id = $1`,
			operation, version+1, to)
		if err != nil {
			return fmt.Errorf("change operation: %w", err)
		}
		return a.insertTransition(ctx, tx, scope, operation, version+1, from, event, to)
	})
}

// Fill writes many operations with the same number of transitions each, in one
// transaction. Their rows lie version by version, as those of operations that run at
// the same time do.
func (a Application) Fill(ctx context.Context, db Beginner, scope envelope.Scope, operations, versions int) error {
	const chunk = 10_000
	for done := 0; done < operations; done += chunk {
		ids := make([]uuid.UUID, min(chunk, operations-done))
		for i := range ids {
			ids[i] = uuid.New()
		}
		err := inScope(ctx, db, scope, func(tx pgx.Tx) error {
			if err := a.insertOperations(ctx, tx, scope, ids, versions); err != nil {
				return err
			}
			return a.insertMany(ctx, tx, scope, ids, versions)
		})
		if err != nil {
			return fmt.Errorf("fill %s: %w", scope, err)
		}
	}
	return nil
}

func (a Application) insertOperations(ctx context.Context, tx pgx.Tx, scope envelope.Scope, ids []uuid.UUID, version int) error {
	var tenant *string
	if id, ok := scope.Tenant(); ok {
		tenant = &id
	}
	_, err := tx.Exec(ctx, `insert into `+a.table("aksara_operations")+`
		(id, application_namespace, tenant_id, tenant_scope, action_name, action_version, executor_type, effect_class,
		 command_id, resolver_key, resolver_version, principal_reference, principal_reference_hash,
		 canonical_input_hash, state, state_version, retain_until)
		select id, $2, $3, $4, 'sample', '1', 'inline', 'read_only', gen_random_uuid(), 'sample', '1', '{}',
		       repeat('0', 64), repeat('0', 64), 'ready', $5, 'infinity'
		from unnest($1::uuid[]) id`, ids, a.Namespace, tenant, scope.Stored(), version)
	if err != nil {
		return fmt.Errorf("insert operations: %w", err)
	}
	return nil
}

// insertTransition writes a transition and its outbox row.
func (a Application) insertTransition(ctx context.Context, tx pgx.Tx, scope envelope.Scope, operation uuid.UUID,
	version int64, from, event, to string,
) error {
	_, err := tx.Exec(ctx, `with t as (
		  insert into `+a.table("aksara_operation_transitions")+` (operation_id, tenant_scope, state_version, from_state, event, to_state)
		  values ($1, $2, $3, nullif($4, ''), $5, $6) returning *)
		insert into `+a.table("aksara_operation_outbox")+` (operation_id, tenant_scope, transition_id, payload)
		select t.operation_id, t.tenant_scope, t.id, `+payload+` from t`,
		operation, scope.Stored(), version, from, event, to)
	if err != nil {
		return fmt.Errorf("insert transition: %w", err)
	}
	return nil
}

// insertMany writes versions 1 to n of many operations, version by version.
func (a Application) insertMany(ctx context.Context, tx pgx.Tx, scope envelope.Scope, ids []uuid.UUID, versions int) error {
	_, err := tx.Exec(ctx, `with t as (
		  insert into `+a.table("aksara_operation_transitions")+` (operation_id, tenant_scope, state_version, from_state, event, to_state)
		  select id, $2, version, case when version > 1 then 'ready' end,
		         case when version = 1 then 'admitted' else 'retry_scheduled' end, 'ready'
		  from generate_series(1, $3::int) version, unnest($1::uuid[]) with ordinality as op(id, n)
		  order by version, n
		  returning *)
		insert into `+a.table("aksara_operation_outbox")+` (operation_id, tenant_scope, transition_id, payload)
		select t.operation_id, t.tenant_scope, t.id, `+payload+` from t order by t.id`,
		ids, scope.Stored(), versions)
	if err != nil {
		return fmt.Errorf("insert transitions: %w", err)
	}
	return nil
}

// payload builds what Aksara writes: seven keys, always all of them.
const payload = `jsonb_build_object('operation_id', t.operation_id, 'state_version', t.state_version,
	'from_state', t.from_state, 'event', t.event, 'to_state', t.to_state,
	'reason_code', t.reason_code, 'attempt_id', t.attempt_id)`
