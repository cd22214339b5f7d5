-- One row for each state change of an operation: the history that the outbox tells about. The relay needs this table
-- only without its supporting index; then it finds an operation's earlier rows through (operation_id, state_version).
--
-- As Aksara's, except that attempt_id has no foreign key, because there is no table of attempts here.
create table :"schema".aksara_operation_transitions (
    id bigserial primary key,
    operation_id uuid not null references :"schema".aksara_operations (id) on delete cascade,
    tenant_scope text not null,
    state_version bigint not null check (state_version > 0),   -- 1, 2, 3 ... in each operation, without gaps
    from_state varchar(32),                                    -- null: the operation's first
    event varchar(64) not null,
    to_state varchar(32) not null,
    reason_code varchar(100),
    actor_reference_hash char(64),
    attempt_id uuid,
    correlation jsonb not null default '{}',
    metadata jsonb not null default '{}',
    created_at timestamptz not null default clock_timestamp(),
    check (pg_column_size(correlation) <= 32768),
    check (pg_column_size(metadata) <= 32768),
    unique (operation_id, state_version)
);

comment on table :"schema".aksara_operation_transitions is 'Compatible with Aksara, created by relay migrate --standalone.';

create index idx_aksara_operation_transitions_history
    on :"schema".aksara_operation_transitions (operation_id, id desc);

alter table :"schema".aksara_operation_transitions enable row level security;
alter table :"schema".aksara_operation_transitions force row level security;
create policy aksara_operation_transitions_tenant_policy on :"schema".aksara_operation_transitions
    using (tenant_scope = current_setting('aksara.current_tenant_id', true))
    with check (tenant_scope = current_setting('aksara.current_tenant_id', true));
