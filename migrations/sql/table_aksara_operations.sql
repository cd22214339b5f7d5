-- One row for each operation: the thing whose state changes are events. The relay reads id and application_namespace.
--
-- The columns, types and checks are Aksara's. What differs from Aksara's table:
--   - current_attempt_id has no foreign key, because there is no table of attempts here;
--   - columns that only Aksara's own workers fill have a default (each is marked below), so that an application inserts
--     application_namespace and tenant_scope and leaves the rest.
--
-- Whoever appends an event updates this row first (state_version + 1). The row lock keeps the events of one operation in
-- the order of their versions; without it a later event could become visible, and be relayed, before an earlier one.
create table :"schema".aksara_operations (
    id uuid primary key default gen_random_uuid(),
    application_namespace varchar(255) not null,
    tenant_id text,                              -- null outside any tenant
    tenant_scope text not null,                  -- the tenant id, or __aksara_global__ outside any tenant
    action_name varchar(255) not null default 'application',              -- default is not Aksara's
    action_version varchar(64) not null default '1',                      -- default is not Aksara's
    executor_type varchar(64) not null default 'inline',                  -- default is not Aksara's
    effect_class varchar(40) not null default 'postgres_atomic'           -- default is not Aksara's
        check (effect_class in ('postgres_atomic', 'external_idempotent', 'external_at_least_once',
                                'external_nonretryable', 'read_only')),
    command_id uuid not null unique default gen_random_uuid(),            -- default is not Aksara's
    resolver_key varchar(255) not null default 'application',             -- default is not Aksara's
    resolver_version varchar(64) not null default '1',                    -- default is not Aksara's
    principal_reference jsonb not null default '{}',                      -- default is not Aksara's
    provenance_version integer not null default 1 check (provenance_version > 0),
    principal_reference_hash char(64) not null default repeat('0', 64),   -- default is not Aksara's
    canonical_input_hash char(64) not null default repeat('0', 64),       -- default is not Aksara's
    idempotency_identity_hash char(64),
    idempotency_scope_hash char(64),
    state varchar(32) not null default 'ready'                            -- default is not Aksara's
        check (state in ('waiting_for_approval', 'ready', 'running', 'succeeded', 'failed', 'cancelled', 'expired')),
    state_version bigint not null default 1 check (state_version > 0),
    current_attempt_id uuid,
    fence bigint not null default 0 check (fence >= 0),
    worker_id varchar(255),
    lease_expires_at timestamptz,
    available_at timestamptz not null default clock_timestamp(),
    deadline_at timestamptz,
    attempt_count integer not null default 0 check (attempt_count >= 0),
    max_attempts integer not null default 3 check (max_attempts > 0),
    approval_required boolean not null default false,
    approval_consumed_at timestamptz,
    cancellation_requested_at timestamptz,
    cancellation_requester jsonb,
    cancellation_reason varchar(500),
    result jsonb,
    result_expires_at timestamptz,
    error jsonb,
    error_expires_at timestamptz,
    correlation jsonb not null default '{}',
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    completed_at timestamptz,
    retain_until timestamptz not null default 'infinity',                 -- default is not Aksara's
    check (deadline_at is null or deadline_at > created_at),
    check (pg_column_size(principal_reference) <= 32768),
    check (pg_column_size(correlation) <= 32768),
    check (result is null or pg_column_size(result) <= 131072),
    check (error is null or pg_column_size(error) <= 65536),
    -- whoever runs an operation is known and has a lease
    check ((state = 'running' and current_attempt_id is not null and worker_id is not null
            and lease_expires_at is not null) or (state <> 'running'))
);

comment on table :"schema".aksara_operations is 'Compatible with Aksara, created by relay migrate --standalone.';

create unique index uq_aksara_operations_idempotency_identity
    on :"schema".aksara_operations (idempotency_identity_hash)
    where idempotency_identity_hash is not null;
create index idx_aksara_operations_claim
    on :"schema".aksara_operations (application_namespace, tenant_scope, state, available_at, created_at)
    where state in ('ready', 'running');
create index idx_aksara_operations_retention
    on :"schema".aksara_operations (application_namespace, tenant_scope, state, retain_until)
    where state in ('succeeded', 'failed', 'cancelled', 'expired');
create index idx_aksara_operations_waiting_deadline
    on :"schema".aksara_operations (application_namespace, tenant_scope, deadline_at, id)
    where state = 'waiting_for_approval' and deadline_at is not null;

-- A transaction sees the rows of the scope that it names. FORCE: the owner too, or tests run as owner would prove nothing.
alter table :"schema".aksara_operations enable row level security;
alter table :"schema".aksara_operations force row level security;
create policy aksara_operations_tenant_policy on :"schema".aksara_operations
    using (tenant_scope = current_setting('aksara.current_tenant_id', true))
    with check (tenant_scope = current_setting('aksara.current_tenant_id', true));
