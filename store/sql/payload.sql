-- Reads the payloads of rows that a claim holds.
--
-- $1 scope  $2 ids  $3 token
--
-- Locks: none. Index: primary key. Order: none.
select row.id, o.payload
from unnest($2::bigint[]) row(id)
cross join lateral (
  select o.payload::text as payload
  from {{.Schema}}.aksara_operation_outbox o
  where o.id = row.id and o.tenant_scope = $1 and o.claimed_by = $3
  limit 1
) o
