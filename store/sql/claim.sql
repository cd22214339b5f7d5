-- Claims due rows of one scope and namespace.
{{- if .Abandoned}} Here: some of those that claims which ran out have
-- left behind. One may be what ended its owner, so the more marks stand behind the tokens of
-- those claims, the fewer rows: all, then ten, then one. The new token begins with as many
-- marks, and the payloads are read when it has one more.
{{- else if .Exact}} Here: only those that no claim
-- holds, also none that ran out.
{{- else}} Rows that a claim which ran out has left
-- behind are not among them: one of those may be what ended its owner.
{{- end}}
--
-- $1 scope  $2 namespace  $3 token  $4 lease in seconds  $5 seconds until a row behind
-- a parked one is looked at again  $6, $7 the due time and id that the walk begins behind
-- $8 most bytes of payload text
{{- if .Abandoned}}  $9 so many marks are too many
{{- else if .Gated}}  $9 a transaction that makes no progress
{{- end}}
--
-- Looks at so many due rows and no more, whatever they turn out to be, and tells where
-- the next claim goes on. The numbers of rows are literals, because as parameters the
-- planner could not rely on them.
-- Locks: outbox rows only, and of these only what it means to write. Rows that another
-- transaction has locked are passed over.
{{- if .Gated}} Nothing is looked at if gate.sql said that
-- another transaction does, unless it is that of $9.
{{- end}}
-- Order: none. One row tells how far the walk came, and has a null for the id of a row
-- claimed; each other one is a row claimed, and has nulls for the rest.
--
-- "Not exported" is spelled in three ways on purpose. Statistics taken while everything
-- is exported make an index over unexported rows look empty, and a probe that could use
-- such an index would then read the whole scope for each row. So the walk says "is
-- null", which only the pending index matches, the probes say coalesce, which only
-- relay_outbox_operation matches, and what is looked up by id says it in a case, which
-- no index matches.
{{- define "unexported"}}
  {{- if .Indexed}}
        from {{.Schema}}.aksara_operation_outbox p
        where p.operation_id = seen.operation_id and coalesce(p.exported_at, 'infinity') = 'infinity'
        order by p.id
  {{- else}}
        -- with a limit inside, and by state_version: the planner must not find out that t.id
        -- is p.transition_id, or it might walk the outbox by that
        from {{.Schema}}.aksara_operation_transitions t
        cross join lateral (
          select p.id, p.next_attempt_at
          from {{.Schema}}.aksara_operation_outbox p
          where p.transition_id = t.id and coalesce(p.exported_at, 'infinity') = 'infinity'
          limit 1
        ) p
        where t.operation_id = seen.operation_id
        order by t.state_version
  {{- end}}
{{- end}}
with due as materialized (
  -- index: idx_aksara_operation_outbox_pending, in its order
  select o.ctid, o.id, o.operation_id, o.next_attempt_at, o.claim_expires_at is not null as abandoned
         {{- if .Abandoned}},
         coalesce(length(substring(o.claimed_by from '/[0-9a-f]{16}(!*)$')), 0) as marks
         {{- end}}
  from {{.Schema}}.aksara_operation_outbox o
  where o.tenant_scope = $1
    {{- if .Gated}}
    and (select current_setting('relay.gate') in ('open', $9))
    {{- end}}
    and o.exported_at is null
    and (o.next_attempt_at, o.id) > ($6::timestamptz, $7::bigint) and o.next_attempt_at <= statement_timestamp()
    and {{if .Exact}}o.claimed_by is null{{else}}(o.claim_expires_at is null or o.claim_expires_at <= statement_timestamp()){{end}}
  order by o.next_attempt_at, o.id
  limit {{.Looks}}
), ready as materialized (
  -- The due rows of operations that are ours, with their place among these. One that stands
  -- at the same place among its operation's unexported rows, whoever holds those, is joined:
  -- no earlier one isn't due. Of the others some stand behind one that is due later, at
  -- reached.
  select seen.ctid, seen.id, seen.turn, seen.stale, seen.place, {{- if .Abandoned}} seen.marks,{{end}}
         seen.whole or seen.earliest[seen.place] is not distinct from seen.id as joined,
         seen.reached[width_bucket(seen.id, seen.earliest)] as reached
  from (
    -- What was found out with the first row of an operation is told to all of them.
    select seen.ctid, seen.id, seen.turn, seen.stale, seen.place, {{- if .Abandoned}} seen.marks,{{end}}
      first_value(seen.whole) over operation as whole,
      first_value(case when not seen.whole then array(
        select p.id
        {{- template "unexported" .}}
        limit seen.due
      ) end) over operation as earliest,
      first_value(case when not seen.whole then array(
        select max(p.next_attempt_at) over (order by {{if .Indexed}}p.id{{else}}t.state_version{{end}} rows unbounded preceding)
        {{- template "unexported" .}}
        limit seen.due
      ) end) over operation as reached
    from (
      -- If so many unexported rows end with the same row, they are the same. Null: not ours.
      select seen.*,
        case when seen.place = 1 and (select op.application_namespace = $2 from {{.Schema}}.aksara_operations op where op.id = seen.operation_id)
        then (
          select p.id
          {{- template "unexported" .}}
          offset seen.due - 1 limit 1
        ) is not distinct from seen.last end as whole
      from (
        -- A row's turn comes with that of the earlier ones: due times may contradict the
        -- order of versions. It is stale if it or an earlier one was left behind.
        {{- if .Abandoned}} Its marks are told if all earlier ones were, with as many.
        {{- end}}
        select due.ctid, due.id, due.operation_id, row_number() over earlier as place,
               max(due.next_attempt_at) over earlier as turn, bool_or(due.abandoned) over earlier as stale,
               {{- if .Abandoned}}
               case when bool_and(due.abandoned) over earlier and min(due.marks) over earlier = max(due.marks) over earlier
                    then due.marks end as marks,
               {{- end}}
               count(*) over operation as due, max(due.id) over operation as last
        from due
        window operation as (partition by due.operation_id order by due.id rows between unbounded preceding and unbounded following),
               earlier as (partition by due.operation_id order by due.id rows unbounded preceding)
      ) seen
      offset 0 -- else the planner would look for whole as often as it is used
    ) seen
    window operation as (partition by seen.operation_id order by seen.id)
  ) seen
  where seen.whole is not null
{{- if .Abandoned}}
), first as materialized (
  select ready.marks
  from ready
  where ready.joined and ready.place = 1 and ready.marks < $9::int
  order by ready.turn, ready.id
  limit 1
{{- end}}
), judged as materialized (
  -- An unbroken run from the operation's first row on is claimed. What stands behind a
  -- later due time is moved there, so that it is met only once.
  select measured.ctid, measured.id, measured.next_attempt_at, measured.claimed_by, measured.bytes, measured.payload, measured.fits, measured.reached,
         bool_and(measured.joined and measured.fits) over operation and row_number() over operation = measured.place as ok
  from (
    select sized.*, sum(sized.bytes) over walked <= $8 or row_number() over walked = 1 as fits
    from (
      -- Not before the limit: a payload may unfold to a thousand times what it takes in the table.
      select locked.ctid, locked.id, locked.operation_id, locked.next_attempt_at, locked.claimed_by, locked.turn, locked.place, locked.joined, locked.reached,
             octet_length(unfolded.payload) as bytes,
             -- the commit waits until all this is sent, so what may end us is read after it
             {{if .Abandoned}}null{{else}}case when octet_length(unfolded.payload) <= {{.MostInline}} then unfolded.payload end{{end}} as payload
      from (
        -- Found by its place in the table, so that there is no plan that reads the table to join it.
        -- Whoever has changed the row since has moved it, and then it isn't taken: the update looks
        -- for it where it was. The guard asks once more because not every server asks the join about
        -- a newer version. It is a case for the reason told in mark.sql.
        select o.ctid, o.id, o.operation_id, o.next_attempt_at, o.claimed_by, o.payload, ready.turn, ready.place, ready.joined, ready.reached
        from ready
        join {{.Schema}}.aksara_operation_outbox o on o.ctid = ready.ctid
        where {{if .Abandoned}}ready.joined and ready.marks = (select first.marks from first){{else}}(ready.joined and not ready.stale or ready.reached is not null){{end}}
          and case when o.ctid = ready.ctid and o.exported_at is null
            and o.next_attempt_at <= statement_timestamp()
            and {{if .Exact}}o.claimed_by is null{{else}}(o.claim_expires_at is null or o.claim_expires_at <= statement_timestamp()){{end}}
            {{- if not .Abandoned}}
            and (ready.joined and not ready.stale or ready.reached > o.next_attempt_at)
            {{- end}}
            then true end
        order by ready.turn, o.id
        limit {{if .Abandoned}}(select case first.marks when 0 then {{.Rows}} when 1 then least({{.Rows}}, 10) else 1 end from first){{else}}{{.Rows}}{{end}}
        for update of o skip locked
      ) locked
      cross join lateral (select locked.payload::text as payload offset 0) unfolded -- once, though it is used several times
    ) sized
    window walked as (order by sized.turn, sized.id rows unbounded preceding)
  ) measured
  window operation as (partition by measured.operation_id order by measured.id)
), pushed as (
  update {{.Schema}}.aksara_operation_outbox o
  set next_attempt_at = least(judged.reached, statement_timestamp() + $5 * interval '1 second')
  from judged
  where o.ctid = judged.ctid and judged.reached > judged.next_attempt_at and not judged.ok
  returning o.id
), claimed as (
  update {{.Schema}}.aksara_operation_outbox o
  set claimed_by = $3{{if .Abandoned}} || repeat('!', least((select first.marks from first), {{.MostMarks}})){{end}},
      claim_expires_at = clock_timestamp() + $4 * interval '1 second',
      export_attempts = least(o.export_attempts, 2147483646) + 1 -- an overflow would stop the scope
  from judged
  where o.ctid = judged.ctid and judged.ok
  returning o.id, o.operation_id, o.topic, o.created_at, o.export_attempts,
            {{if .Abandoned}}o.claimed_by as token, {{end}}judged.claimed_by as expired, judged.bytes, judged.payload
), walked as (
  -- how far: to the last row that was looked at, or that was taken when there was no
  -- room for more
  select ended.cut, ended.seen, ended.ours, ended.moved, last.next_attempt_at, last.id,
         abandoned.turn, abandoned.id as abandoned_id, passed.turn as passed_turn, passed.id as passed_id
  from (
    select count(*) = {{.Rows}} and count(*) < (select count(*) from ready where ready.joined and not ready.stale or ready.reached is not null)
             or not coalesce(bool_and(judged.fits), true) as cut,
           (select count(*) from due) as seen,
           (select count(*) from ready) as ours,
           (select count(*) from pushed) as moved
    from judged
  ) ended
  left join lateral (
    (select due.next_attempt_at, due.id from due where not ended.cut order by 1 desc, 2 desc limit 1)
    union all
    (select judged.next_attempt_at, judged.id from judged where ended.cut and judged.fits order by 1 desc, 2 desc limit 1)
  ) last on true
  left join lateral (
    select ready.turn, ready.id
    from ready
    where ready.joined and ready.stale and ready.place = 1 {{- if .Abandoned}} and ready.id not in (select claimed.id from claimed){{end}}
    order by ready.turn, ready.id
    limit 1
  ) abandoned on true
  left join lateral (
    select ready.turn, ready.id
    from ready
    where not ready.joined
    order by ready.turn, ready.id
    limit 1
  ) passed on true
)
select walked.cut, walked.seen, walked.ours, walked.moved, walked.next_attempt_at, walked.id, walked.turn, walked.abandoned_id,
       walked.passed_turn, walked.passed_id, statement_timestamp() as began, {{if .Gated}}current_setting('relay.gate'){{else}}''{{end}} as gate,
       {{if .Abandoned}}(select min(claimed.token) from claimed){{else}}null::text{{end}} as token,
       null::bigint, null::uuid, null::varchar, null::timestamptz, null::integer, null::varchar, null::integer, null::text
from walked
union all
select null, null, null, null, null, null, null, null, null, null, null, null, null,
       claimed.id, claimed.operation_id, claimed.topic, claimed.created_at, claimed.export_attempts,
       claimed.expired, claimed.bytes, claimed.payload
from claimed
