-- Counts the unexported rows of one scope and namespace, each count up to a cap. Rows in
-- flight were due before they were claimed, so they stand at the front of the walk.
--
-- $1 scope  $2 namespace  $3 cap
--
-- Locks: none. Index: idx_aksara_operation_outbox_pending. Order: one row.
with pending as materialized (
  select o.next_attempt_at, coalesce(o.claim_expires_at > statement_timestamp(), false) as held
  from {{.Schema}}.aksara_operation_outbox o
  where o.tenant_scope = $1 and o.exported_at is null and o.next_attempt_at <= statement_timestamp()
    and (select op.application_namespace = $2 from {{.Schema}}.aksara_operations op where op.id = o.operation_id)
  order by o.next_attempt_at, o.id
  limit 2 * $3::bigint
), later as materialized (
  select o.next_attempt_at, coalesce(o.claim_expires_at > statement_timestamp(), false) as held
  from {{.Schema}}.aksara_operation_outbox o
  where o.tenant_scope = $1 and o.exported_at is null
    and o.next_attempt_at > statement_timestamp() and o.next_attempt_at < 'infinity'
    and (select op.application_namespace = $2 from {{.Schema}}.aksara_operations op where op.id = o.operation_id)
  order by o.next_attempt_at, o.id
  limit $3::bigint
), parked as materialized (
  select 1
  from {{.Schema}}.aksara_operation_outbox o
  where o.tenant_scope = $1 and o.exported_at is null and o.next_attempt_at = 'infinity'
    and (select op.application_namespace = $2 from {{.Schema}}.aksara_operations op where op.id = o.operation_id)
  limit $3::bigint
)
select least((select count(*) from pending where not held), $3::bigint) as due,
       least((select count(*) from pending where held) + (select count(*) from later where held), $3::bigint) as in_flight,
       (select count(*) from later where not held) as delayed,
       (select count(*) from parked) as parked,
       coalesce(extract(epoch from statement_timestamp()
                  - (select min(pending.next_attempt_at) from pending where not held)), 0)::float8 as oldest_due_seconds
