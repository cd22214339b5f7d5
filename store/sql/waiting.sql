-- Tells for each of some scopes whether it has rows that are not exported, whosever they are
-- and whenever they are due.
--
-- $1 scopes
--
-- The setting for row security is made anew for each scope, and its value is what the
-- row must have: so the rows can't be looked for before.
-- Locks: none. Index: idx_aksara_operation_outbox_pending, once for each scope.
-- Order: as given.
select first.found is not null
from unnest($1::text[]) with ordinality asked (scope, n)
cross join lateral (
  select set_config('aksara.current_tenant_id', asked.scope, true) as scope
) own
left join lateral (
  select true as found
  from {{.Schema}}.aksara_operation_outbox o
  where o.tenant_scope = own.scope and o.exported_at is null
  order by o.next_attempt_at, o.id
  limit 1
) first on true
order by asked.n
