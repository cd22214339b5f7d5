-- Claims due rows of one scope and namespace.
--
-- $1 scope  $2 namespace  $3 token  $4 lease in seconds  $5 seconds until a row behind
-- a parked one is looked at again  $6 walk start  $7 most bytes of payload text
--
-- Locks: outbox rows only, those that another transaction has locked are passed over.
-- Index: idx_aksara_operation_outbox_pending, in its order, so the walk ends after as
-- many rows as it locks. That number is a literal, because as a parameter the planner
-- could not rely on it.
-- Order: ascending id. Always at least one row; its id is null if nothing was claimed.
--
-- "Not exported" is spelled in two ways on purpose. Statistics taken while everything is
-- exported make an index over unexported rows look empty, and a probe that could use
-- such an index would then read the whole scope for each row. So the walk says "is
-- null", which only the pending index matches, and the probes say coalesce, which only
-- relay_outbox_operation matches.
with due as materialized (
  select o.id, o.operation_id, o.next_attempt_at, o.claimed_by,
         {{- if not .Indexed}} o.transition_id,{{end}}
         octet_length(o.payload::text) as bytes,
         head.id as head_id, head.next_attempt_at as head_at
  from {{.Schema}}.aksara_operation_outbox o
  cross join lateral (
    -- the first unexported row of the operation: one probe
    {{- if .Indexed}}
    select p.id, p.next_attempt_at, p.claim_expires_at
    from {{.Schema}}.aksara_operation_outbox p
    where p.operation_id = o.operation_id and coalesce(p.exported_at, 'infinity') = 'infinity'
    order by p.id
    limit 1
    {{- else}}
    -- with a limit inside, and by state_version: the planner must not find out that t.id
    -- is p.transition_id, or it might walk the outbox by that
    select p.id, p.next_attempt_at, p.claim_expires_at
    from {{.Schema}}.aksara_operation_transitions t
    cross join lateral (
      select p.id, p.next_attempt_at, p.claim_expires_at
      from {{.Schema}}.aksara_operation_outbox p
      where p.transition_id = t.id and coalesce(p.exported_at, 'infinity') = 'infinity'
      limit 1
    ) p
    where t.operation_id = o.operation_id
    order by t.state_version
    limit 1
    {{- end}}
  ) head
  where o.tenant_scope = $1
    and o.exported_at is null
    and o.next_attempt_at >= $6::timestamptz and o.next_attempt_at <= statement_timestamp()
    and (o.claim_expires_at is null or o.claim_expires_at <= statement_timestamp())
    -- an operation in flight is passed over, not locked
    and (head.claim_expires_at is null or head.claim_expires_at <= statement_timestamp())
    and (select op.application_namespace = $2 from {{.Schema}}.aksara_operations op where op.id = o.operation_id)
  order by o.next_attempt_at, o.id
  limit {{.Limit}}
  for update of o skip locked
), linked as (
  select due.id, due.operation_id, due.next_attempt_at, due.claimed_by, due.bytes, due.head_at,
         prev.next_attempt_at as prev_at,
         sum(due.bytes) over walked <= $7 or row_number() over walked = 1 as fits,
         -- the operation's previous unexported row is the previous one that this claim locked
         prev.id is not distinct from lag(due.id) over (partition by due.operation_id order by due.id) as joined
  from due
  left join lateral (
    {{- if .Indexed}}
    select p.id, p.next_attempt_at
    from {{.Schema}}.aksara_operation_outbox p
    where due.id <> due.head_id and p.operation_id = due.operation_id
      and coalesce(p.exported_at, 'infinity') = 'infinity' and p.id < due.id
    order by p.id desc
    limit 1
    {{- else}}
    select p.id, p.next_attempt_at
    from {{.Schema}}.aksara_operation_transitions t
    cross join lateral (
      select p.id, p.next_attempt_at
      from {{.Schema}}.aksara_operation_outbox p
      where p.transition_id = t.id and coalesce(p.exported_at, 'infinity') = 'infinity'
      limit 1
    ) p
    where due.id <> due.head_id and t.operation_id = due.operation_id
      and t.state_version < (select own.state_version from {{.Schema}}.aksara_operation_transitions own
                             where own.id = due.transition_id)
    order by t.state_version desc
    limit 1
    {{- end}}
  ) prev on true
  window walked as (order by due.next_attempt_at, due.id rows unbounded preceding)
), judged as materialized (
  -- an unbroken run from the operation's head is claimed; what stands behind a later
  -- due time is moved there, so that it is met only once
  select linked.id, linked.claimed_by, linked.bytes,
         bool_and(linked.joined and linked.fits and linked.head_at <= statement_timestamp()) over chain as ok,
         bool_or(greatest(linked.head_at, linked.prev_at) > linked.next_attempt_at) over chain as behind,
         max(greatest(linked.head_at, linked.prev_at)) over chain as not_before
  from linked
  window chain as (partition by linked.operation_id order by linked.id)
), pushed as (
  update {{.Schema}}.aksara_operation_outbox o
  set next_attempt_at = least(judged.not_before, statement_timestamp() + $5 * interval '1 second')
  from judged
  where o.id = judged.id and judged.behind and not judged.ok
  returning o.id
), claimed as (
  update {{.Schema}}.aksara_operation_outbox o
  set claimed_by = $3,
      claim_expires_at = clock_timestamp() + $4 * interval '1 second',
      export_attempts = least(o.export_attempts, 2147483646) + 1 -- an overflow would stop the scope
  from judged
  where o.id = judged.id and judged.ok
  returning o.id, o.operation_id, o.topic, o.created_at, o.export_attempts,
            judged.claimed_by as expired, judged.bytes,
            case when judged.bytes <= {{.MostBytes}} then o.payload::text end as payload
)
select (select count(*) from due) as seen,
       (select count(*) from pushed) as pushed,
       (select min(due.next_attempt_at) from due) as first_at,
       claimed.*
from (select 1) always
left join claimed on true
order by claimed.id
