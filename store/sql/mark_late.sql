-- Marks rows that were delivered under a claim that has been lost since. Touches only
-- exported_at: the other columns may be a new owner's. Not by id alone, because ids are
-- used again after a database was restored.
--
-- $1 ids, ascending  $2 operation ids  $3 created_at
--
-- Locks: the rows. Index: primary key, as in release.sql. Order: none.
update {{.Schema}}.aksara_operation_outbox o
set exported_at = clock_timestamp()
from unnest($1::bigint[], $2::uuid[], $3::timestamptz[]) row(id, operation_id, created_at)
where o.id = row.id and o.id = any($1) and o.operation_id = row.operation_id and o.created_at = row.created_at
  and case when o.exported_at is null then true end
returning o.id, case when isfinite(o.created_at) then extract(epoch from o.exported_at - o.created_at) else 0 end::float8
