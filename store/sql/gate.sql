-- Asks whether no other claim looks at the rows that one is to look at, and makes others find
-- that out until the transaction ends. Else it tells whose transaction does. Not in the claim
-- itself: there a claim that has just ended would be gone, and its rows would still look as they
-- did before it.
--
-- $1 a number of the scope and namespace
-- Locks: an advisory lock, which is not waited for.
select set_config('relay.gate', case when pg_try_advisory_xact_lock($1) then 'open' else coalesce((
  select l.virtualtransaction
  from pg_locks l
  where l.locktype = 'advisory' and l.objsubid = 1 and l.granted
    and l.database = (select d.oid from pg_database d where d.datname = current_database())
    and l.classid = (($1 >> 32) & 4294967295)::oid and l.objid = ($1 & 4294967295)::oid
  limit 1
), 'gone') end, true)
