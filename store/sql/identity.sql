-- Tells which database this is, wherever it is reached: its server's number, which a copy of
-- its files shares, and its name there.
--
-- Locks: none.
select (select system_identifier from pg_control_system())::text || '/' || current_database()
