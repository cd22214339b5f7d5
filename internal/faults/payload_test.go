package faults_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"outboxrelay/internal/relayproc"
)

// fragments are added to payloads, which are then what an application may well have written.
func fragments() map[string]string {
	return map[string]string{
		"integer beyond 2^53":     `{"n": 9007199254740993}`,
		"many digits":             `{"n": 0.1234567890123456789012345678901234567890}`,
		"trailing zero":           `{"n": 1.0}`,
		"minus zero":              `{"n": -0, "m": -0.0}`,
		"exponent":                `{"n": 1e-7, "m": 1E+2}`,
		"huge exponent":           `{"n": 1e100000}`,
		"tiny number":             `{"n": 1e-16000}`,
		"line separators":         `{"s": "a\u2028b\u2029c"}`,
		"marks of HTML":           `{"s": "</script><!-- & -->"}`,
		"control characters":      `{"s": "\u0001\u001f\u007f\t\r\n\\\""}`,
		"beyond the first plane":  `{"s": "\ud83d\ude80 🚀"}`,
		"empty and repeated keys": `{"": 1, "a": 1, "a": 2}`,
		"as large as allowed":     `{"s": "` + strings.Repeat("x", 65_000) + `"}`, // 64 KiB with the rest
		"nested deeply":           `{"s": ` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`,
	}
}

// What the table holds arrives byte for byte, whatever JSON allows.
func TestPayloadsArriveByteForByte(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	all := fragments()
	s.Fill(s.acme, len(all), 1)
	for i, name := range slices.Sorted(maps.Keys(all)) {
		s.DB.Exec(t, `update aksara_operation_outbox set payload = payload || $2::jsonb
			where id = (select id from aksara_operation_outbox order by id limit 1 offset $1)`, i, all[name])
	}
	s.run()
	s.Drained("true")
	events := s.Events()
	relayproc.ExactlyOnce(t, events, len(all))
	for _, e := range events {
		var stored string
		if err := s.Pool.QueryRow(t.Context(), `select payload::text from aksara_operation_outbox where operation_id = $1`,
			e.OperationID).Scan(&stored); err != nil {
			t.Fatal(err)
		}
		if string(e.Data) != stored {
			t.Errorf("a payload came as\n%.300s\nwant\n%.300s", e.Data, stored)
		}
	}
	s.clean()
}

// Rows with extreme columns are delivered, or parked alone: the rest of their operation waits, and other operations don't.
func TestExtremeColumns(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	delivered := []string{
		`export_attempts = 2147483647`, `next_attempt_at = '-infinity'`, `next_attempt_at = '4713-01-01 BC'`,
		`created_at = '0001-01-01 00:00:00Z'`, `created_at = '9999-12-31 23:59:59.999999Z'`, `claim_expires_at = '-infinity', claimed_by = 'x'`,
	}
	parked := []string{
		`created_at = 'infinity'`, `created_at = '-infinity'`, `created_at = '10000-01-01 00:00:00Z'`,
		`created_at = '0001-12-31 23:59:59Z BC'`, `created_at = '294276-12-31 23:59:59Z'`, `topic = ''`,
	}
	waiting := []string{`next_attempt_at = '294276-01-01'`, `claim_expires_at = 'infinity', claimed_by = 'x'`}
	all := slices.Concat(delivered, parked, waiting)
	s.Fill(s.acme, len(all), 2)
	for i, change := range all {
		s.DB.Exec(t, `update aksara_operation_outbox set `+change+` where id = (select id from aksara_operation_outbox
			where payload->>'state_version' = '1' order by id limit 1 offset $1)`, i)
	}
	s.Fill(s.acme, 20, 2)
	first := s.Count("select min(id) from aksara_operation_outbox") // ids of first versions follow each other

	s.run()
	relayproc.Until(t, "rows to be delivered or parked", func() error {
		return unequal(len(parked), s.CountRows("next_attempt_at = 'infinity' and last_error is not null"))
	})
	s.Drained("operation_id not in (select operation_id from aksara_operation_outbox where id >= $1 and id < $2)",
		first+len(delivered), first+len(all))
	relayproc.ExactlyOnce(t, s.Events(), 2*len(delivered)+40)
	if n := s.CountRows("exported_at is null"); n != 2*(len(parked)+len(waiting)) {
		t.Errorf("%d rows are not exported, want two each of %d operations", n, len(parked)+len(waiting))
	}
	if n := s.CountRows("export_attempts = 2147483647 and exported_at is not null"); n != 1 {
		t.Error("the row with the most attempts has lost them")
	}
	if status := s.relay.Stop(); status != 0 {
		t.Errorf("relay ended with status %d", status)
	}
}

// Tenant names may hold what separates, escapes or quotes elsewhere: each event still names its own tenant, and no two
// tenants share a source.
func TestTenantNamesStayApart(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	names := []string{
		"a:b", "a/b", "a%2Fb", "a%3Ab", "50%", "a+b", "a b", `"quoted"`, "it's", `back\slash`, "a;b&c=d", "🚀", "É", "E\u0301",
		"acme", "ACME", "/tenants/acme", strings.Repeat("é", 1000),
	}
	for _, name := range names {
		s.Fill(relayproc.Tenant(t, name), 2, 2)
	}
	list, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	s.relay = relayproc.Start(t, s.Env(string(list)))
	s.deliveredOnce()
	s.rightTenants()
	sources := map[string]string{}
	for _, e := range s.Events() {
		tenant, _ := e.Scope.Tenant()
		if other, ok := sources[e.Source()]; ok && other != tenant {
			t.Errorf("tenants %q and %q share source %s", tenant, other, e.Source())
		}
		sources[e.Source()] = tenant
	}
	if len(sources) != len(names) {
		t.Errorf("%d sources came of %d tenants", len(sources), len(names))
	}
}
