-- Names other namespaces in which rows of a scope wait, among its first thousand.
--
-- $1 scope  $2 namespace
--
-- Locks: none. Index: idx_aksara_operation_outbox_pending. Order: by name, three at most.
with pending as materialized (
  select (select op.application_namespace from {{.Schema}}.aksara_operations op where op.id = o.operation_id) as namespace
  from {{.Schema}}.aksara_operation_outbox o
  where o.tenant_scope = $1 and o.exported_at is null
  order by o.next_attempt_at, o.id
  limit 1000
)
select distinct pending.namespace::text
from pending
where pending.namespace <> $2
order by 1
limit 3
