-- One row for each transition that is to be relayed. As Aksara's, without exception.
--
-- To append an event, in one transaction: set aksara.current_tenant_id to the scope; raise state_version of the row in
-- aksara_operations; insert the transition; insert this row with its id, and a payload that is an object with at least
-- operation_id (this row's) and state_version (the transition's). Everything else has a default.
create table :"schema".aksara_operation_outbox (
    id bigserial primary key,
    operation_id uuid not null references :"schema".aksara_operations (id) on delete cascade,
    tenant_scope text not null,
    transition_id bigint not null unique references :"schema".aksara_operation_transitions (id) on delete cascade,
    topic varchar(255) not null default 'aksara.operation.transition',   -- becomes the event's type
    payload jsonb not null,
    export_attempts integer not null default 0 check (export_attempts >= 0),
    next_attempt_at timestamptz not null default clock_timestamp(),      -- infinity: parked
    exported_at timestamptz,                                             -- null: not yet exported
    claimed_by varchar(255),
    claim_expires_at timestamptz,
    last_error varchar(2000),
    created_at timestamptz not null default clock_timestamp(),
    check (pg_column_size(payload) <= 65536)
);

comment on table :"schema".aksara_operation_outbox is 'Compatible with Aksara, created by relay migrate --standalone.';

create index idx_aksara_operation_outbox_pending
    on :"schema".aksara_operation_outbox (tenant_scope, next_attempt_at, id)
    where exported_at is null;

alter table :"schema".aksara_operation_outbox enable row level security;
alter table :"schema".aksara_operation_outbox force row level security;
create policy aksara_operation_outbox_tenant_policy on :"schema".aksara_operation_outbox
    using (tenant_scope = current_setting('aksara.current_tenant_id', true))
    with check (tenant_scope = current_setting('aksara.current_tenant_id', true));
