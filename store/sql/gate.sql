-- Asks whether no other claim looks at the rows that one is to look at, and makes others find
-- that out until the transaction ends. Not in the claim itself: there a claim that has just
-- ended would be gone, and its rows would still look as they did before it.
--
-- $1 a number of the scope and namespace
-- Locks: an advisory lock, which is not waited for.
select set_config('relay.gate', pg_try_advisory_xact_lock($1)::text, true)
