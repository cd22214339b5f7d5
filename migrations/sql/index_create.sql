-- Finds the first, and the previous, unexported event of an operation in one probe, so that events of one operation are
-- claimed in order.
--
-- The odd predicate is deliberate. It means "exported_at is null", but the planner can't prove that, so only statements
-- that spell it the same way use this index. Statistics are mostly taken while everything is exported; then any index on
-- unexported rows looks empty, and a statement led into it would read a whole backlog for each row.
--
-- CONCURRENTLY: the application goes on writing during the build. A build that is cut short leaves an invalid index,
-- which the next run replaces.
create index concurrently relay_outbox_operation
    on :"schema".aksara_operation_outbox (operation_id, id)
    where coalesce(exported_at, 'infinity') = 'infinity';
