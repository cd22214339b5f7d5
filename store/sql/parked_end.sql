{{- if eq .Do "behind" -}}
-- Makes the rows behind others due once more, after the statement that ended the parking
-- of those was committed. A claim that began before may still have seen them as parked,
-- and have moved what is behind them a day ahead since; or it may be about to, but then
-- it does not take rows that came due after it began.
--
-- $1 scope  $2 ids of the rows that were parked, ascending  $3 their operation ids
{{- else if eq .Do "dead-letter" -}}
-- Gives rows up that a claim holds, after their dead letters: they count as exported. The
-- rows behind them come due at once.
--
-- $1 scope  $2 ids, ascending  $3 token  $4 texts for last_error
{{- else if eq .Do "discard" -}}
-- Gives parked rows up: they count as exported. The rows behind them come due at once.
--
-- $1 scope  $2 namespace  $3 ids, ascending  $4 text for last_error
{{- else -}}
-- Makes parked rows due again, and the rows behind them.
--
-- $1 scope  $2 namespace  $3 ids, ascending
{{- end}}
--
-- Rows that are not {{if eq .Do "dead-letter"}}the claim's{{else}}parked{{end}} are left alone. So are, behind them, those in flight,
-- which are somebody else's, and those that are parked themselves.
--
-- Locks: the rows, in ascending order. It waits for other transactions, because passing
-- over a row that a claim is about to move a day ahead would leave it there. Locked rows
-- are judged on their newest version.
-- Index: primary key, and for the rows of an operation
{{- if .Indexed}} relay_outbox_operation.{{else}} the unique one of
-- aksara_operation_transitions.{{end}} "Not exported" is spelled as in claim.sql and mark.sql.
-- Order: ascending id, one row for each whose parking ended. All rows come due at the same
-- instant, so id decides.
with head as materialized (
  {{- if eq .Do "behind"}}
  select ended.id, ended.operation_id from unnest($2::bigint[], $3::uuid[]) ended(id, operation_id)
  {{- else if eq .Do "dead-letter"}}
  select o.id, o.operation_id, letter.text
  from unnest($2::bigint[], $4::text[]) letter(id, text)
  join {{.Schema}}.aksara_operation_outbox o on o.id = letter.id
  where o.id = any($2) -- as in release.sql
    and o.tenant_scope = $1 and case when rtrim(o.claimed_by, '!') = $3 and o.exported_at is null then true end
  order by o.id
  for update of o
  {{- else}}
  select o.id, o.operation_id
  from {{.Schema}}.aksara_operation_outbox o
  where o.id = any($3::bigint[])
    and o.tenant_scope = $1
    and num_nulls(o.exported_at) = 1 and o.next_attempt_at = 'infinity'
    and (o.claim_expires_at is null or o.claim_expires_at <= statement_timestamp())
    and (select op.application_namespace = $2 from {{.Schema}}.aksara_operations op where op.id = o.operation_id)
  order by o.id
  for update of o
  {{- end}}
), following as materialized (
  -- "offset 0" makes it a probe for each; else the planner may read the whole index once
  select p.id, head.id as head_id
  from head
  cross join lateral (
    {{- if .Indexed}}
    select p.id
    from {{.Schema}}.aksara_operation_outbox p
    where p.operation_id = head.operation_id and coalesce(p.exported_at, 'infinity') = 'infinity' and p.id > head.id
    {{- else}}
    select p.id
    from {{.Schema}}.aksara_operation_transitions t
    cross join lateral (
      select p.id
      from {{.Schema}}.aksara_operation_outbox p
      where p.transition_id = t.id and coalesce(p.exported_at, 'infinity') = 'infinity'
      limit 1
    ) p
    where t.operation_id = head.operation_id and p.id > head.id
    {{- end}}
    offset 0
  ) p
), behind as materialized (
  select o.id, following.head_id
  from following
  join {{.Schema}}.aksara_operation_outbox o on o.id = following.id
  where o.tenant_scope = $1
    and num_nulls(o.exported_at) = 1 and o.next_attempt_at < 'infinity'
    and (o.claim_expires_at is null or o.claim_expires_at <= statement_timestamp())
  order by o.id
  for update of o
), freed as (
  update {{.Schema}}.aksara_operation_outbox o
  set next_attempt_at = statement_timestamp()
  from behind
  where o.id = behind.id
{{- if eq .Do "retry"}}
), ended as (
  update {{.Schema}}.aksara_operation_outbox o
  set next_attempt_at = statement_timestamp()
  from head
  where o.id = head.id
{{- else if ne .Do "behind"}}
), ended as (
  update {{.Schema}}.aksara_operation_outbox o
  set exported_at = clock_timestamp(), claimed_by = null, claim_expires_at = null,
      last_error = {{if eq .Do "discard"}}$4{{else}}head.text{{end}}
  from head
  where o.id = head.id
{{- end}}
)
select head.id, head.operation_id, (select count(*) from behind where behind.head_id = head.id) as behind
from head
order by head.id
