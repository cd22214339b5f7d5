-- Tells which claims hold rows of some scopes, and which rows.
--
-- $1 scopes  $2 most rows to look at of each
--
-- Rows are claimed in the order in which they came due, so those stand in front of others.
-- The setting for row security is made anew for each scope, and its value is what the
-- row must have: so the rows can't be looked for before.
-- Locks: none. Index: idx_aksara_operation_outbox_pending, once for each scope.
-- Order: none.
select asked.n, held.claimed_by, held.ids, held.expired
from unnest($1::text[]) with ordinality asked (scope, n)
cross join lateral (
  select set_config('aksara.current_tenant_id', asked.scope, true) as scope
) own
cross join lateral (
  select row.claimed_by, array_agg(row.id order by row.id) as ids,
         coalesce(max(row.claim_expires_at) <= statement_timestamp(), true) as expired
  from (
    select o.id, o.claimed_by, o.claim_expires_at
    from {{.Schema}}.aksara_operation_outbox o
    where o.tenant_scope = own.scope
      and o.exported_at is null
      and o.next_attempt_at <= statement_timestamp()
    order by o.next_attempt_at, o.id
    limit $2
  ) row
  where row.claimed_by is not null
  group by row.claimed_by
) held
