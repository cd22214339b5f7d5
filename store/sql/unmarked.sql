-- Counts rows that a claim still holds unexported, although it has just marked them.
--
-- $1 ids  $2 token
--
-- Locks: none. Index: primary key. The guard is a case for the reason told in mark.sql.
select count(*)
from {{.Schema}}.aksara_operation_outbox o
where o.id = any($1::bigint[]) and case when rtrim(o.claimed_by, '!') = $2 and o.exported_at is null then true end
