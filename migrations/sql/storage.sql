-- fillfactor: claiming writes a new version of each row. With room for it on the same page no index has to be touched,
-- which halves what a claim costs. Claims take whole pages of neighbouring rows, so about half of each page has to be
-- free. It holds for pages written from now on; nothing is rewritten.
--
-- autovacuum: every event leaves dead versions behind at the very place where the next claim starts to read. So it starts
-- after a part of the table that stays small when the table is large, and does not pause in between.
alter table :"schema".aksara_operation_outbox set (
    fillfactor = 45,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);
