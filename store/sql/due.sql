-- Tells for each of some scopes how long it is until its first row comes due that nobody
-- holds; null if there is none. A hint: whether it can be claimed is not looked at.
--
-- $1 scopes  $2, $3 the due time and id behind which to look, as long as $1
--
-- The setting for row security is made anew for each scope, and its value is what the
-- row must have: so the rows can't be looked for before.
-- Locks: none. Index: idx_aksara_operation_outbox_pending, once for each scope.
-- Order: as given.
select case when first.next_attempt_at > statement_timestamp()
            then extract(epoch from first.next_attempt_at - statement_timestamp())::float8
            when first.next_attempt_at <= statement_timestamp() then 0 end
from unnest($1::text[], $2::timestamptz[], $3::bigint[]) with ordinality asked (scope, due, id, n)
cross join lateral (
  select set_config('aksara.current_tenant_id', asked.scope, true) as scope
) own
left join lateral (
  select o.next_attempt_at
  from {{.Schema}}.aksara_operation_outbox o
  where o.tenant_scope = own.scope
    and o.exported_at is null
    and (o.next_attempt_at, o.id) > (asked.due, asked.id) and o.next_attempt_at < 'infinity'
    and (o.claim_expires_at is null or o.claim_expires_at <= statement_timestamp())
  order by o.next_attempt_at, o.id
  limit 1
) first on true
order by asked.n
