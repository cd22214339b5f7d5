package migrations

import "testing"

func TestStorageParametersAreSetWhereTheyDiffer(t *testing.T) {
	t.Parallel()
	const name = "storage parameters of aksara_operation_outbox"
	const table = `alter table s.aksara_operation_outbox `
	cases := map[string]struct {
		sql  string
		want Outcome
	}{
		"as set":        {``, AlreadyThere},
		"spelling":      {table + `set (autovacuum_vacuum_scale_factor = 0.0200)`, Set},
		"more than set": {table + `set (autovacuum_enabled = true)`, AlreadyThere},
		"one differs":   {table + `set (fillfactor = 90)`, Set},
		"one missing":   {table + `reset (autovacuum_vacuum_cost_delay)`, Set},
		"none":          {table + `reset (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, autovacuum_vacuum_cost_delay)`, Set},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			conn := tablesOnly(t, "s")
			mustRun(t, conn, Options{Schema: "s"})
			exec(t, conn, c.sql)
			if outcome := mustRun(t, conn, Options{Schema: "s"})[name]; outcome != c.want {
				t.Errorf("%s, want %s", outcome, c.want)
			}
			if outcome := mustRun(t, conn, Options{Schema: "s"})[name]; outcome != AlreadyThere {
				t.Errorf("again: %s", outcome)
			}
		})
	}
}
