-- Marks delivered rows exported, if the claim still holds them.
--
-- $1 ids, ascending  $2 token
--
-- Locks: the rows. Index: primary key; it isn't a join, so there is no other plan. Order:
-- none. The guard is a case because the planner can't look into one, and so finds no
-- partial index that matches it, for the reason told in claim.sql.
update {{.Schema}}.aksara_operation_outbox o
set exported_at = clock_timestamp(), claimed_by = null, claim_expires_at = null, last_error = null
where o.id = any($1::bigint[]) and case when rtrim(o.claimed_by, '!') = $2 and o.exported_at is null then true end
returning o.id, case when isfinite(o.created_at) then extract(epoch from o.exported_at - o.created_at) else 0 end::float8
