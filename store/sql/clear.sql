-- Takes a claim, and the error of an earlier attempt, off rows that somebody else
-- exported meanwhile, so that exported rows carry neither.
--
-- $1 ids, ascending  $2 token
--
-- Locks: the rows. Index: primary key. Order: none.
update {{.Schema}}.aksara_operation_outbox o
set claimed_by = null, claim_expires_at = null, last_error = null
where o.id = any($1::bigint[]) and case when rtrim(o.claimed_by, '!') = $2 and o.exported_at is not null then true end
