-- Gives the ids of parked rows of one scope and namespace, a page at a time.
--
-- $1 scope  $2 namespace  $3 the id before the page  $4 most ids
--
-- Locks: none. Index: idx_aksara_operation_outbox_pending. Nothing lies above infinity,
-- so bound and order could do with the id alone; but then a walk along the primary key
-- would do as well, through all rows there are.
-- Order: ascending id.
select o.id
from {{.Schema}}.aksara_operation_outbox o
where o.tenant_scope = $1
  and o.exported_at is null
  and (o.next_attempt_at, o.id) > ('infinity', $3::bigint)
  and (o.claim_expires_at is null or o.claim_expires_at <= statement_timestamp())
  and (select op.application_namespace = $2 from {{.Schema}}.aksara_operations op where op.id = o.operation_id)
order by o.next_attempt_at, o.id
limit $4::bigint
