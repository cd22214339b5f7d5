-- Marks delivered rows exported, if the claim still holds them.
--
-- $1 ids, ascending  $2 token
--
-- Locks: the rows. Index: primary key; "not exported" is spelled so that no partial
-- index matches it, for the reason told in claim.sql. Order: none.
update {{.Schema}}.aksara_operation_outbox o
set exported_at = clock_timestamp(), claimed_by = null, claim_expires_at = null, last_error = null
from unnest($1::bigint[]) row(id)
where o.id = row.id and o.claimed_by = $2 and num_nulls(o.exported_at) = 1
returning o.id, case when isfinite(o.created_at) then extract(epoch from o.exported_at - o.created_at) else 0 end::float8
