-- Marks delivered rows exported, if the claim still holds them.
--
-- $1 ids, ascending  $2 token
--
-- Locks: the rows. Index: primary key. Order: none. The guard is a case because the
-- planner can't look into one: no partial index matches it, for the reason told in
-- claim.sql, and it isn't thought to hold for one row at most, which on a small table
-- would make the planner compare every row with every id.
update {{.Schema}}.aksara_operation_outbox o
set exported_at = clock_timestamp(), claimed_by = null, claim_expires_at = null, last_error = null
from unnest($1::bigint[]) row(id)
where o.id = row.id and case when rtrim(o.claimed_by, '!') = $2 and o.exported_at is null then true end
returning o.id, case when isfinite(o.created_at) then extract(epoch from o.exported_at - o.created_at) else 0 end::float8
