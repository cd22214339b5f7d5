-- Describes rows of one scope and namespace by the ids that an operator gives: each is
-- either a row's id, or an operation and the state version of its payload, which finds
-- unexported rows only.
--
-- $1 scope  $2 namespace  $3 row ids  $4 operation ids  $5 state versions, as text
-- $6 count at most so many rows behind one. $3 to $5 are as long as each other.
--
-- Locks: none. Index: primary key, and for the rows of an operation
{{- if .Indexed}} relay_outbox_operation.{{else}} the unique one of
-- aksara_operation_transitions.{{end}} "Not exported" is spelled as in claim.sql.
-- Order: as given, beginning with 1; what isn't there is left out.
with wanted as materialized (
  select given.n, coalesce(given.id, (
    -- the payload's own text: 3, not 3.0 and not "3"
    {{- if .Indexed}}
    select p.id
    from {{.Schema}}.aksara_operation_outbox p
    where p.operation_id = given.operation_id and coalesce(p.exported_at, 'infinity') = 'infinity'
      and (p.payload -> 'state_version')::text = given.version
    order by p.id
    limit 1
    {{- else}}
    select p.id
    from {{.Schema}}.aksara_operation_transitions t
    cross join lateral (
      select p.id, p.payload
      from {{.Schema}}.aksara_operation_outbox p
      where p.transition_id = t.id and coalesce(p.exported_at, 'infinity') = 'infinity'
      limit 1
    ) p
    where t.operation_id = given.operation_id and (p.payload -> 'state_version')::text = given.version
    order by t.state_version
    limit 1
    {{- end}}
  )) as id
  from unnest($3::bigint[], $4::uuid[], $5::text[]) with ordinality given(id, operation_id, version, n)
)
select wanted.n, o.id, o.operation_id,
       coalesce(left((o.payload -> 'state_version')::text, 20), '') as version,
       o.topic, o.created_at, o.export_attempts, octet_length(o.payload::text) as bytes, coalesce(o.last_error, '') as error,
       case when o.exported_at is not null then 'exported'
            when o.claim_expires_at > statement_timestamp() then 'in flight'
            when o.next_attempt_at = 'infinity' then 'parked'
            when o.next_attempt_at > statement_timestamp() then 'delayed'
            else 'due' end as state,
       (select count(*) from (
          {{- if .Indexed}}
          select 1
          from {{.Schema}}.aksara_operation_outbox p
          where p.operation_id = o.operation_id and coalesce(p.exported_at, 'infinity') = 'infinity' and p.id > o.id
          {{- else}}
          select 1
          from {{.Schema}}.aksara_operation_transitions t
          cross join lateral (
            select p.id
            from {{.Schema}}.aksara_operation_outbox p
            where p.transition_id = t.id and coalesce(p.exported_at, 'infinity') = 'infinity'
            limit 1
          ) p
          where t.operation_id = o.operation_id and p.id > o.id
          {{- end}}
          limit $6::bigint) behind) as behind
from wanted
join {{.Schema}}.aksara_operation_outbox o on o.id = wanted.id
where o.tenant_scope = $1
  and (select op.application_namespace = $2 from {{.Schema}}.aksara_operations op where op.id = o.operation_id)
order by wanted.n
