-- One row for each operation of which a consumer has taken an event. Safe to run again, and by several at once: the lock
-- is held until this transaction ends, since "if not exists" alone can fail when two create at the same moment.
select pg_advisory_xact_lock(hashtextextended('relay_inbox', 0));

create table if not exists relay_inbox (
    -- Who takes: consumers with different effects in one database each take every event.
    consumer  text collate "C" not null check (octet_length(consumer) between 1 and 255),
    -- SHA-256 of ce_source, because a source may be longer than an index entry can be.
    source    bytea not null check (octet_length(source) = 32),
    operation uuid not null,
    -- The state versions that were taken: [1,4) stands for 1, 2 and 3. Versions follow each other, so it stays short.
    -- Numeric, because the end of a range is one more than the greatest bigint may be.
    versions  nummultirange not null check (not isempty(versions)),
    -- When the last of them was taken, for pruning.
    taken_at  timestamptz not null default clock_timestamp(),
    primary key (consumer, source, operation)
);
