-- Takes one event: $1 consumer, $2 the bytes of ce_source, $3 operation, $4 state version. No row: it was taken before.
-- Else the greatest version that has been taken of its operation by now, this one included.
--
-- Locks the operation's row until the transaction ends; a new row makes others who insert it wait on the primary key,
-- which is the only index. So two transactions never decide about one operation at the same time. The row that is
-- judged is the newest one that is committed, not the statement's snapshot of it.
insert into relay_inbox as inbox (consumer, source, operation, versions)
values ($1, sha256($2), $3, nummultirange(numrange($4::numeric, $4::numeric + 1)))
on conflict (consumer, source, operation) do update
   set versions = inbox.versions + excluded.versions, taken_at = excluded.taken_at
 where not inbox.versions @> excluded.versions
returning (upper(versions) - 1)::bigint;
