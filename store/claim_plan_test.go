package store_test

import (
	"slices"
	"testing"

	"outboxrelay/envelope"
	"outboxrelay/internal/pgtest"
	"outboxrelay/relay"
	"outboxrelay/store"
)

// planRounds is enough claims on one connection for the server to think of a plan that
// does without the parameters' values.
const planRounds = 7

// drainLittle exports a few of many due rows, again and again, and makes sure that no
// plan, whatever made the server choose it, takes more at once.
func (f *fixture) drainLittle(t *testing.T, s *store.Store, scope envelope.Scope) {
	t.Helper()
	req := request(scope)
	req.Rows = 5
	for i := range planRounds {
		req.Token = request(scope).Token
		claim, err := s.Claim(t.Context(), req)
		if err != nil {
			t.Fatalf("claim %d: %v", i, err)
		}
		held := value[int](t, f, "select count(*) from aksara_operation_outbox where claimed_by = $1", req.Token)
		if len(claim.Rows) != req.Rows || !claim.More || held != req.Rows {
			t.Errorf("claim %d: %d rows, more %t, %d under the claim in the table, want %d and more", i, len(claim.Rows), claim.More, held, req.Rows)
		}
		results, err := s.Settle(t.Context(), claim, onAll(claim, relay.Verdict{Exported: true}))
		if err != nil || slices.ContainsFunc(results, func(r relay.Result) bool { return r.Status != relay.Written }) {
			t.Errorf("settlement %d: %v, %v", i, results, err)
		}
	}
}

// What an administrator may set for a role.
func TestClaimUnderAnySetting(t *testing.T) {
	t.Parallel()
	settings := map[string][]string{
		"nothing":            nil,
		"generic plans":      {"plan_cache_mode = force_generic_plan"},
		"custom plans":       {"plan_cache_mode = force_custom_plan"},
		"repeatable read":    {"default_transaction_isolation = 'repeatable read'"},
		"serializable":       {"default_transaction_isolation = serializable"},
		"deferrable":         {"default_transaction_isolation = serializable", "default_transaction_deferrable = on"},
		"just in time":       {"jit = on", "jit_above_cost = 0", "jit_optimize_above_cost = 0", "jit_inline_above_cost = 0"},
		"little memory":      {"work_mem = '64kB'"},
		"odd costs":          {"random_page_cost = 1000", "cpu_tuple_cost = 10", "effective_cache_size = '1MB'"},
		"no order of joins":  {"join_collapse_limit = 1", "from_collapse_limit = 1", "geqo_threshold = 2"},
		"odd output":         {"datestyle = 'sql, dmy'", "intervalstyle = 'sql_standard'", "extra_float_digits = -15", "bytea_output = 'escape'", "timezone = 'Asia/Kathmandu'"},
		"another search":     {"search_path = ''"},
		"no commit to disk":  {"synchronous_commit = off"},
		"short lock timeout": {"lock_timeout = '1ms'"},
	}
	var all []string
	for _, switched := range []string{
		"indexscan", "indexonlyscan", "nestloop", "sort", "material", "tidscan", "hashagg", "incremental_sort",
	} {
		off := "enable_" + switched + " = off"
		settings[off] = []string{off}
		all = append(all, off)
	}
	settings["all that can be switched off"] = all

	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		f.fill(t, scope, 1667, 3)
		f.exec(t, "analyze aksara_operation_outbox")
		for name, statements := range settings {
			t.Run(name, func(t *testing.T) {
				url := f.restricted(t)
				for _, statement := range statements {
					f.exec(t, "alter role "+pgtest.User(t, url)+" set "+statement)
				}
				f.drainLittle(t, f.open(t, store.Config{URL: url}), scope)
			})
		}
	})
}

// What the server believes of the tables, and what it is told to do with each row.
func TestClaimUnderAnyStatistics(t *testing.T) {
	t.Parallel()
	const analyze = "analyze aksara_operation_outbox, aksara_operations, aksara_operation_transitions"
	type step func(*testing.T, *fixture, envelope.Scope)
	run := func(statement string) step {
		return func(t *testing.T, f *fixture, _ envelope.Scope) { f.exec(t, statement) }
	}
	pending := func(t *testing.T, f *fixture, scope envelope.Scope) { f.fill(t, scope, 500, 3) }
	exported := func(t *testing.T, f *fixture, scope envelope.Scope) {
		f.fill(t, scope, 1000, 3)
		f.exec(t, "update aksara_operation_outbox set exported_at = clock_timestamp()")
	}
	for name, steps := range map[string][]step{
		"never analysed":                  {pending},
		"analysed while empty":            {run(analyze), pending},
		"analysed while tiny":             {func(t *testing.T, f *fixture, scope envelope.Scope) { f.fill(t, scope, 1, 3) }, run(analyze), pending},
		"analysed while all was exported": {exported, run(analyze), pending},
		"exported, not vacuumed":          {exported, pending, run(analyze)},
		"vacuumed while all was exported": {exported, run("vacuum " + analyze), pending},
		"long operations":                 {func(t *testing.T, f *fixture, scope envelope.Scope) { f.fill(t, scope, 8, 300) }, run(analyze)},
		"thought to be huge": {pending, run(analyze), run(`update pg_class set reltuples = 1e9, relpages = 1e8
			where relname ~ '^(aksara_operation|idx_aksara_operation|relay_outbox)'`)},
		"thought to be tiny": {pending, run(analyze), run(`update pg_class set reltuples = 1, relpages = 1e6
			where relname ~ '^(aksara_operation|idx_aksara_operation|relay_outbox)'`)},
		"second policy": {pending, run(analyze), run(`create policy second on aksara_operation_outbox using (tenant_scope <> 'secret')`)},
		"policy with a function": {pending, run(`create function seen(text) returns boolean language plpgsql stable as 'begin return true; end'`),
			run(`create policy second on aksara_operation_outbox as restrictive using (seen(tenant_scope))`)},
		"index on the due time": {pending, run(`create index other on aksara_operation_outbox (next_attempt_at)`), run(analyze)},
		"index on unexported rows": {exported, run(`create index other on aksara_operation_outbox (operation_id, id) where exported_at is null`),
			run(`create index another on aksara_operation_outbox (tenant_scope, id) where exported_at is null`), run("vacuum " + analyze), pending},
		"index on everything": {pending, run(`create index other on aksara_operation_outbox (operation_id)`),
			run(`create index another on aksara_operation_outbox (tenant_scope, claim_expires_at)`), run(analyze)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, f *fixture) {
				f.exec(t, "alter table aksara_operation_outbox set (autovacuum_enabled = off)")
				scope := tenant(t, "acme")
				for _, do := range steps {
					do(t, f, scope)
				}
				f.drainLittle(t, f.Store, scope)
				req := request(scope)
				req.Rows = 200
				plan := f.explain(t, req)
				if n := plan.buffers(); n > 40*req.Rows {
					t.Errorf("a claim of %d rows takes %d buffers: %s", req.Rows, n, plan)
				}
			})
		})
	}
}
