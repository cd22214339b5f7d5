package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"outboxrelay/envelope"
	"outboxrelay/internal/relayproc"
	"outboxrelay/internal/sample"
)

// Rows of tenants that aren't configured, of other namespaces (also one that differs
// only in case) and of the non-tenant scope stay as they are.
func TestOnlyConfiguredScopes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, relayproc.Standalone)
	acme, other := relayproc.Tenant(t, "acme"), relayproc.Tenant(t, "Acme")
	f.Fill(acme, 100, 3)
	f.Fill(other, 100, 3)
	f.Fill(envelope.NonTenant(), 100, 3)
	for _, foreign := range []string{"Orders", "billing"} {
		if err := (sample.Application{Namespace: foreign}).Fill(t.Context(), f.Pool, acme, 100, 3); err != nil {
			t.Fatal(err)
		}
	}
	const ours = `tenant_scope = 'acme' and (select application_namespace from aksara_operations p where p.id = operation_id) = 'orders'`
	before := f.rows("not (" + ours + ")")

	p := relayproc.Start(t, f.Env("acme"))
	f.Drained(ours)
	p.Stop()
	if after := f.rows("not (" + ours + ")"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Error("rows of other scopes or namespaces changed")
	}
	events := f.Events()
	relayproc.ExactlyOnce(t, events, 300)
	for _, e := range events {
		if e.Namespace != relayproc.Namespace || e.Scope != acme {
			t.Fatalf("an event of %s, %s came", e.Namespace, e.Scope)
		}
	}

	// With the non-tenant scope on, it alone comes in addition.
	relayproc.Start(t, f.Env("", map[string]string{"RELAY_NON_TENANT": "true"}))
	f.Drained(`tenant_scope = '__aksara_global__'`)
	relayproc.ExactlyOnce(t, f.Events(), 600)
}

// The tenants' file changes while the relay runs: good lists are taken over, bad ones
// change nothing.
func TestTenantsFile(t *testing.T) {
	t.Parallel()
	f := newFixture(t, relayproc.Standalone)
	path := filepath.Join(t.TempDir(), "tenants")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seen := func(p *relayproc.Process, times int, text string) {
		t.Helper()
		relayproc.Until(t, fmt.Sprintf("%q in the log, %d times", text, times), func() error {
			if n := strings.Count(p.Log.String(), text); n < times {
				return fmt.Errorf("%d times so far", n)
			}
			return nil
		})
	}
	a, b := relayproc.Tenant(t, "a"), relayproc.Tenant(t, "b")
	write("a\n")
	p := relayproc.Start(t, f.Env("", map[string]string{"RELAY_TENANTS_FILE": path}))
	f.Fill(a, 10, 1)
	f.Fill(b, 10, 1)
	f.Drained("tenant_scope = 'a'")

	write("a\n\nb\n")
	seen(p, 1, "was taken over")
	f.Drained("true")

	for i, bad := range []string{"", "a\na\n", "__aksara_global__\n"} {
		write(bad)
		seen(p, i+1, "is not taken over")
		f.Fill(a, 10, 1)
		f.Fill(b, 10, 1)
		f.Drained("true")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	seen(p, 4, "is not taken over")
	f.Fill(b, 10, 1)
	f.Drained("true")

	write(`["b"]`)
	seen(p, 2, "was taken over")
	f.Fill(a, 10, 1)
	f.Fill(b, 10, 1)
	f.Drained("tenant_scope = 'b'")
	if n := f.Count("select count(*) from aksara_operation_outbox where exported_at is null and claimed_by is null"); n != 10 {
		t.Errorf("%d rows of the tenant taken out are untouched, want 10", n)
	}
	write("b\na\n")
	seen(p, 3, "was taken over")
	f.Drained("true")
	relayproc.ExactlyOnce(t, f.Events(), f.Count("select count(*) from aksara_operation_outbox"))
	if status := p.Stop(); status != 0 {
		t.Errorf("relay ended with status %d", status)
	}
}

// Faults in the configuration are all told in one message, with status 2 and no secret.
func TestBadConfiguration(t *testing.T) {
	t.Parallel()
	stdout, stderr, status := relayproc.Command(t, map[string]string{
		"RELAY_DATABASE_URL": "postgres://u:s3cr3t-w0rd@h:bad/d", "RELAY_TENANT": "x", "RELAY_WORKERS": "99",
		"RELAY_PORT": "tcp://10.0.0.1:80", "RELAY_SERVICE_HOST": "10.0.0.1",
	}, "run")
	if status != 2 || stdout != "" {
		t.Errorf("status %d, want 2; standard output %q, want none", status, stdout)
	}
	for _, name := range []string{"RELAY_DATABASE_URL", "RELAY_TENANT:", "RELAY_WORKERS", "RELAY_NAMESPACE", "RELAY_KAFKA_BROKERS", "RELAY_TENANTS"} {
		if strings.Count(stderr, name) == 0 {
			t.Errorf("%s is not named in:\n%s", name, stderr)
		}
	}
	for _, text := range []string{"s3cr3t", "RELAY_PORT", "RELAY_SERVICE_HOST"} {
		if strings.Count(stderr, text) > 0 {
			t.Errorf("%s stands in:\n%s", text, stderr)
		}
	}
}
