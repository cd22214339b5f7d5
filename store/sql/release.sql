-- Gives up undelivered rows, if the claim still holds them: parks, delays or returns
-- them. One statement, so that rows delayed alike come due at the same instant and
-- their ids decide.
--
-- $1 ids, ascending  $2 token  $3 seconds until due: null keeps the due time, 'Infinity'
-- parks  $4 error texts: null keeps last_error  $5 attempts to take back
--
-- Locks: the rows. Index: primary key, as in mark.sql; "any" because a plan made while the
-- table was small would read all of it for a join. Order: none.
update {{.Schema}}.aksara_operation_outbox o
set claimed_by = null, claim_expires_at = null,
    last_error = coalesce(row.error, o.last_error),
    next_attempt_at = case when row.delay is null then o.next_attempt_at
                           when row.delay = 'Infinity' then 'infinity'
                           else statement_timestamp() + row.delay * interval '1 second' end,
    export_attempts = greatest(o.export_attempts - row.refund, 0)
from unnest($1::bigint[], $3::float8[], $4::text[], $5::int[]) row(id, delay, error, refund)
where o.id = row.id and o.id = any($1) and case when rtrim(o.claimed_by, '!') = $2 and o.exported_at is null then true end
returning o.id
