-- Tells of the first parked rows of one scope and namespace why they are, without a look
-- at their payloads, which may be large.
--
-- $1 scope  $2 namespace  $3 most rows
--
-- Locks: none. Index: idx_aksara_operation_outbox_pending, as in parked_ids.sql.
-- Order: ascending id.
select o.id, o.operation_id, o.created_at, o.export_attempts, coalesce(o.last_error, '')
from {{.Schema}}.aksara_operation_outbox o
where o.tenant_scope = $1
  and o.exported_at is null
  and o.next_attempt_at = 'infinity'
  and (o.claim_expires_at is null or o.claim_expires_at <= statement_timestamp())
  and (select op.application_namespace = $2 from {{.Schema}}.aksara_operations op where op.id = o.operation_id)
order by o.next_attempt_at, o.id
limit $3::bigint
