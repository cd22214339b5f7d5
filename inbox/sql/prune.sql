-- Forgets the operations of consumer $1 of which nothing was taken for $2 seconds. Reads the table once, without an
-- index on the time: it would cost every take more than it saves here. Waits for the rows of transactions under way, and
-- keeps those that got an event meanwhile.
delete from relay_inbox where consumer = $1 and taken_at < clock_timestamp() - make_interval(secs => $2);
