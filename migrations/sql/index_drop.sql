-- Makes room for a new build, without holding up the application.
drop index concurrently :"schema".relay_outbox_operation;
