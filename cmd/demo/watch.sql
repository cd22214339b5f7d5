-- Tells the demo what happens to the outbox, at each commit and in the order of the commits. A relay needs none of this.
--
-- A message holds at most twenty rows, because PostgreSQL limits its size.
create schema demo;

create function demo.tell_insert() returns trigger language plpgsql as $$
begin
  perform pg_notify('demo', json_build_object('kind', 'written', 'tenant', tenant_scope,
                                              'at', clock_timestamp(), 'rows', json_agg(told order by id))::text)
  from (select id, tenant_scope, (row_number() over (order by id) - 1) / 20 as part,
               json_build_object('id', id, 'operation', operation_id, 'version', payload->'state_version',
                                 'state', payload->'to_state') as told
        from fresh) each
  group by tenant_scope, part;
  return null;
end $$;

create function demo.tell_update() returns trigger language plpgsql as $$
begin
  perform pg_notify('demo', json_build_object('kind', kind, 'tenant', tenant_scope,
                                              'at', clock_timestamp(), 'rows', json_agg(told order by id))::text)
  from (select id, tenant_scope, kind, (row_number() over (partition by kind order by id) - 1) / 20 as part,
               json_build_object('id', id, 'attempts', export_attempts, 'error', left(last_error, 100),
                                 'due', case when isfinite(next_attempt_at) then next_attempt_at end,
                                 'until', claim_expires_at) as told
        from (select fresh.*, case
                when fresh.exported_at is not null and stale.exported_at is null then 'exported'
                when fresh.claimed_by is not null and fresh.claimed_by is distinct from stale.claimed_by then 'claimed'
                when stale.claimed_by is not null and fresh.claimed_by is null and fresh.export_attempts < stale.export_attempts
                  then 'released'
                when stale.claimed_by is not null and fresh.claimed_by is null then 'refused'
                when fresh.claimed_by is null and fresh.next_attempt_at > stale.next_attempt_at then 'held back'
              end as kind
              from fresh join stale using (id)) changed
        where kind is not null) each
  group by kind, tenant_scope, part;
  return null;
end $$;

create trigger demo_insert after insert on public.aksara_operation_outbox
  referencing new table as fresh for each statement execute function demo.tell_insert();
create trigger demo_update after update on public.aksara_operation_outbox
  referencing old table as stale new table as fresh for each statement execute function demo.tell_update();
