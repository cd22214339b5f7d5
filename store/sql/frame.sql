-- Begins the work of a transaction: its scope for row security, its time limit, and
-- guards against plans that read a whole scope. A plan serves for a while, whatever the
-- values: for a few rows making one takes as long as the rest. All settings end with the
-- transaction, so nothing leaks through a connection pool.
--
-- $1 scope  $2 statement time-out in milliseconds  $3 that for each lock
select set_config('aksara.current_tenant_id', $1, true),
       set_config('statement_timeout', $2, true),
       set_config('lock_timeout', $3, true),
       {{- if .Durable}}
       set_config('synchronous_commit', case when current_setting('synchronous_commit') in ('off', 'local') then 'on'
                                             else current_setting('synchronous_commit') end, true),
       {{- end}}
       set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('jit', 'off', true),
       set_config('enable_seqscan', 'off', true),
       set_config('enable_bitmapscan', 'off', true),
       set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true),
       set_config('enable_tidscan', 'on', true)
