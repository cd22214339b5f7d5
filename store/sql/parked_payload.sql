-- Gives the payload of one row of one scope and namespace; null if its text is larger
-- than is read.
--
-- $1 scope  $2 namespace  $3 id
--
-- Locks: none. Index: primary key. Order: at most one row.
select case when octet_length(o.payload::text) <= {{.MostBytes}} then o.payload::text end
from {{.Schema}}.aksara_operation_outbox o
where o.id = $3 and o.tenant_scope = $1
  and (select op.application_namespace = $2 from {{.Schema}}.aksara_operations op where op.id = o.operation_id)
