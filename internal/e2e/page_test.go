package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"outboxrelay/internal/browsertest"
	"outboxrelay/internal/relayproc"
)

// hostileTenant is a name that would do harm if it were taken for markup.
const hostileTenant = `<img src=x onerror="document.title='broken'">` + "\u202e"

// The page of a relay that works, in a browser: what is delivered moves, a parked event
// shows with its reason, and no name becomes part of the page or of a metric.
func TestPage(t *testing.T) {
	t.Parallel()
	f := newFixture(t, relayproc.Standalone)
	acme, hostile := relayproc.Tenant(t, "acme"), relayproc.Tenant(t, hostileTenant)
	tenants, err := json.Marshal([]string{"acme", hostileTenant})
	if err != nil {
		t.Fatal(err)
	}
	f.Fill(hostile, 1, 2)
	f.DB.Exec(t, `update aksara_operation_outbox set next_attempt_at = 'infinity', last_error = '<b>broken</b>' || chr(27) || '[2J'
		where id = (select min(id) from aksara_operation_outbox)`)
	env := f.Env(string(tenants), map[string]string{"RELAY_HTTP_DETAILS": "true"})
	p := relayproc.Start(t, env)
	tab := browsertest.Open(t, 1280, 800)
	tab.Go("http://" + p.Address())
	tab.Until("readiness", `document.getElementById("state").textContent == "Ready"`)
	for n := 30; n <= 60; n += 30 {
		f.Fill(acme, 10, 3)
		tab.Until("the events", fmt.Sprintf(`document.querySelector("#delivered .note").textContent == "%d events since the start"`, n))
	}
	tab.Until("the parked event", `document.querySelector("#parked tbody tr")`)
	shown := browsertest.Eval[string](tab, `document.querySelector("#parked tbody tr").innerText`)
	for _, part := range []string{`<img src=x onerror="document.title='broken'">\u202e`, `<b>broken</b>\u001b[2J`} {
		if !strings.Contains(shown, part) {
			t.Errorf("the parked event shows as %q, want %q in it", shown, part)
		}
	}
	if n := browsertest.Eval[int](tab, `document.querySelectorAll("img, b").length`); n != 0 {
		t.Errorf("%d elements came out of texts", n)
	}
	if _, body := p.Get("/metrics"); strings.Contains(body, "onerror") || strings.Contains(body, "acme") {
		t.Error("a metric names a tenant")
	}
	sameShape(t, p, env)
}

// sameShape fails unless /status answers as "relay status --json" does.
func sameShape(t *testing.T, p *relayproc.Process, env map[string]string) {
	t.Helper()
	code, memory := p.Get("/status")
	out, errs, status := relayproc.Command(t, env, "status", "--json")
	if code != http.StatusOK || status != 0 {
		t.Fatalf("/status: %d; relay status: %d, %s", code, status, errs)
	}
	var all [2]struct {
		Fields map[string]any
		Scopes []map[string]any
	}
	for i, text := range []string{memory, out} {
		if err := json.Unmarshal([]byte(text), &all[i].Fields); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if err := json.Unmarshal([]byte(text), &all[i]); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
	keys := func(m map[string]any) string { return fmt.Sprint(slices.Sorted(maps.Keys(m))) }
	if a, b := keys(all[0].Fields), keys(all[1].Fields); a != b || len(all[0].Scopes) != 2 || len(all[1].Scopes) != 2 {
		t.Fatalf("/status has %s for %d scopes, relay status %s for %d", a, len(all[0].Scopes), b, len(all[1].Scopes))
	}
	for i, a := range all[0].Scopes {
		if b := all[1].Scopes[i]; keys(a) != keys(b) || a["tenant"] != b["tenant"] || a["parked"] != b["parked"] {
			t.Errorf("/status has %v, relay status %v", a, b)
		}
	}
}

// Without details no name and no reason leaves the relay, not even for who asks for it.
func TestPageWithoutDetails(t *testing.T) {
	t.Parallel()
	f := newFixture(t, relayproc.Standalone)
	f.Fill(relayproc.Tenant(t, "acme-tenant"), 1, 2)
	f.DB.Exec(t, `update aksara_operation_outbox set next_attempt_at = 'infinity', last_error = 'acme reason'
		where id = (select min(id) from aksara_operation_outbox)`)
	p := relayproc.Start(t, f.Env("acme-tenant"))
	relayproc.Until(t, "the count", func() error {
		if _, body := p.Get("/status"); !strings.Contains(body, `"parked":1`) {
			return fmt.Errorf("status is %s", body)
		}
		return nil
	})
	for _, path := range []string{"/", "/status", "/page.json", "/page.json?find=acme", "/metrics", "/readyz", "/livez"} {
		if _, body := p.Get(path); strings.Contains(body, "acme") {
			t.Errorf("%s tells of a tenant: %s", path, body)
		}
	}
}
