-- Gives a claim a new lease on rows that it still holds, and its token other marks.
--
-- $1 ids, ascending  $2 token with the marks that it is to have  $3 lease in seconds
--
-- Locks: the rows. Index: primary key, as in mark.sql. Order: none.
update {{.Schema}}.aksara_operation_outbox o
set claimed_by = $2, claim_expires_at = clock_timestamp() + $3 * interval '1 second'
where o.id = any($1::bigint[]) and case when rtrim(o.claimed_by, '!') = rtrim($2, '!') and o.exported_at is null then true end
returning o.id
