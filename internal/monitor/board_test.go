package monitor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/internal/monitor"
	"outboxrelay/relay"
)

func tenant(t testing.TB, id string) envelope.Scope {
	t.Helper()
	scope, err := envelope.Tenant(id)
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

// tenants is so many scopes.
func tenants(t testing.TB, n int) (scopes []envelope.Scope) {
	t.Helper()
	for i := range n {
		scopes = append(scopes, tenant(t, fmt.Sprintf("tenant-%05d", i)))
	}
	return scopes
}

// serving is the handler of a board, with all well.
func serving(b *monitor.Board) http.Handler {
	well := func() error { return nil }
	return monitor.Handler(monitor.NewMetrics("v", "go", 1), b, well, well)
}

// answer decodes what a path answers.
func answer[T any](t *testing.T, handler http.Handler, path string) (value T) {
	t.Helper()
	status, header, body := get(t, handler, "GET", path)
	if status != http.StatusOK || header.Get("Content-Type") != "application/json" || header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%s: %d, %v", path, status, header)
	}
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		t.Fatalf("%s: %v in %s", path, err, body)
	}
	return value
}

// troubled is a board with something to hide.
func troubled(t *testing.T, details bool) *monitor.Board {
	t.Helper()
	b := monitor.NewBoard(monitor.About{Namespace: "orders", CountCap: 100, Details: details})
	secret, id := tenant(t, "secret-tenant"), "secret-tenant"
	scopes := []envelope.Scope{secret, envelope.NonTenant(), tenant(t, "idle-secret")}
	b.Scopes(scopes)
	b.Counted(secret, monitor.Counts{Due: 3, InFlight: 1, Delayed: 2, Parked: 100, OldestDue: 5}, errors.New("secret reason"))
	b.Counted(envelope.NonTenant(), monitor.Counts{Due: 1, OldestDue: 9}, nil)
	b.Healthy(monitor.Health{Live: errors.New("secret live"), Database: errors.New("secret database"), Broker: errors.New("secret broker")})
	b.Round([]monitor.Parked{{Tenant: &id, ID: 7, Reason: "secret reason"}})
	return b
}

// Without details nothing names a tenant or an error, whatever is asked, and no question
// finds out whether there is a tenant of some name.
func TestNoDetails(t *testing.T) {
	t.Parallel()
	handler := serving(troubled(t, false))
	page := answer[map[string]any](t, handler, "/page.json")
	for _, path := range []string{"/status", "/page.json", "/page.json?find=secret-tenant", "/page.json?find=other&limit=9&order=name", "/metrics"} {
		_, _, body := get(t, handler, "GET", path)
		if strings.Contains(body, "secret") {
			t.Errorf("%s tells a secret: %s", path, body)
		}
		if strings.HasPrefix(path, "/page.json") {
			if got, want := fmt.Sprint(answer[map[string]any](t, handler, path)["scopes"]), fmt.Sprint(page["scopes"]); got != want {
				t.Errorf("%s answers %s, without a question %s", path, got, want)
			}
		}
	}
	p := answer[monitor.Page](t, handler, "/page.json")
	if p.Live.OK || p.Database.OK || p.Broker.OK || p.Scopes.Configured != 3 || p.Scopes.Waiting != 2 {
		t.Errorf("the page has %+v", p)
	}
	want := monitor.Counts{Due: 4, InFlight: 1, Delayed: 2, Parked: 100, OldestDue: 9}
	if s := answer[monitor.Status](t, handler, "/status"); s.Totals != want || s.Scopes != nil || p.Totals != want {
		t.Errorf("status: %+v, page %+v, want totals %+v", s, p.Totals, want)
	}
	if p.Capped != (monitor.Capped{Parked: true}) {
		t.Errorf("capped: %+v", p.Capped)
	}
}

func TestDetails(t *testing.T) {
	t.Parallel()
	handler := serving(troubled(t, true))
	s := answer[monitor.Status](t, handler, "/status")
	if len(s.Scopes) != 3 || *s.Scopes[0].Tenant != "secret-tenant" || s.Scopes[0].Due != 3 || s.Scopes[1].Tenant != nil || s.CountedAt == nil {
		t.Errorf("status: %+v", s)
	}
	p := answer[monitor.Page](t, handler, "/page.json")
	if p.Live.Error != "secret live" || p.Database.Error != "secret database" || p.Broker.Error != "secret broker" {
		t.Errorf("conditions: %+v %+v %+v", p.Live, p.Database, p.Broker)
	}
	if list := p.Scopes.List; len(list) != 3 || list[0].Tenant != nil || *list[1].Tenant != "secret-tenant" || list[1].Trouble != "secret reason" {
		t.Errorf("scopes, the worst first: %+v", list)
	}
	if len(p.Parked) != 1 || p.Parked[0].Reason != "secret reason" {
		t.Errorf("parked: %+v", p.Parked)
	}
}

func TestFindAndOrder(t *testing.T) {
	t.Parallel()
	b := monitor.NewBoard(monitor.About{Details: true})
	names := map[string]monitor.Counts{
		"Alpha": {Due: 1, OldestDue: 9}, "beta": {Due: 50, OldestDue: 2}, "gamma": {Delayed: 7, Parked: 1}, "delta": {Parked: 3}, "alphabet": {},
	}
	var scopes []envelope.Scope
	for name := range names {
		scopes = append(scopes, tenant(t, name))
	}
	b.Scopes(scopes)
	for name, c := range names {
		b.Counted(tenant(t, name), c, nil)
	}
	handler := serving(b)
	for query, want := range map[string]string{
		"":                      "Alpha beta gamma delta alphabet",
		"order=age":             "Alpha beta gamma delta alphabet",
		"order=nonsense":        "Alpha beta gamma delta alphabet",
		"order=due":             "beta Alpha gamma delta alphabet",
		"order=delayed":         "gamma Alpha beta delta alphabet",
		"order=parked":          "delta gamma Alpha beta alphabet",
		"order=name":            "Alpha alphabet beta delta gamma",
		"find=ALPHA&order=name": "Alpha alphabet",
		"find=nobody":           "",
		"limit=2":               "Alpha beta",
		"limit=-1":              "Alpha beta gamma delta alphabet",
		"limit=x&find=a&find=b": "Alpha beta gamma delta alphabet",
	} {
		p := answer[monitor.Page](t, handler, "/page.json?"+query)
		var got []string
		for _, s := range p.Scopes.List {
			got = append(got, *s.Tenant)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	if p := answer[monitor.Page](t, handler, "/page.json?find=alpha&limit=1"); p.Scopes.Found != 2 || p.Scopes.Configured != 5 {
		t.Errorf("found: %+v", p.Scopes)
	}
}

// However many scopes there are, a look at the page carries few of them.
func TestPageOfManyScopesIsSmall(t *testing.T) {
	t.Parallel()
	b := monitor.NewBoard(monitor.About{Details: true})
	scopes := tenants(t, 10_000)
	b.Scopes(scopes)
	for i, scope := range scopes {
		b.Counted(scope, monitor.Counts{Due: i, OldestDue: float64(i)}, nil)
	}
	b.Round(nil)
	handler := serving(b)
	if _, _, body := get(t, handler, "GET", "/page.json"); len(body) > 20_000 {
		t.Errorf("a look is %d bytes", len(body))
	}
	p := answer[monitor.Page](t, handler, "/page.json?limit=1000000")
	if len(p.Scopes.List) != 1000 || p.Scopes.Found != 10_000 || *p.Scopes.List[0].Tenant != "tenant-09999" {
		t.Errorf("%d of %d scopes, the first %s", len(p.Scopes.List), p.Scopes.Found, *p.Scopes.List[0].Tenant)
	}
	if s := answer[monitor.Status](t, handler, "/status"); len(s.Scopes) != 10_000 {
		t.Errorf("status has %d scopes", len(s.Scopes))
	}
}

// A tenant that is taken out goes, the others keep their figures until they are counted
// again.
func TestScopesChange(t *testing.T) {
	t.Parallel()
	b := monitor.NewBoard(monitor.About{Details: true})
	a, c, d := tenant(t, "a"), tenant(t, "c"), tenant(t, "d")
	b.Scopes([]envelope.Scope{a, c})
	b.Counted(a, monitor.Counts{Due: 1}, errors.New("x"))
	b.Counted(c, monitor.Counts{Due: 2}, nil)
	b.Scopes([]envelope.Scope{c, d})
	b.Counted(a, monitor.Counts{Due: 9}, nil) // a round that began before
	if s := b.Status(); s.Totals.Due != 2 || len(s.Scopes) != 2 || s.CountedAt != nil {
		t.Errorf("status: %+v", s)
	}
}

// settle tells a board of n events delivered with a lag, one that was lost, and one that
// was not delivered.
func settle(b *monitor.Board, n int, lag time.Duration) {
	verdicts := append(slices.Repeat([]relay.Verdict{{Exported: true}}, n+1), relay.Verdict{Wait: relay.Park})
	results := append(slices.Repeat([]relay.Result{{Status: relay.Written, Lag: lag}}, n), relay.Result{Status: relay.Lost}, relay.Result{Status: relay.Written})
	b.Settled(relay.Claim{}, verdicts, results, 0)
}

func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := monitor.NewBoard(monitor.About{})
		pace := func() monitor.Pace { return b.Page(monitor.Query{}).Pace }
		if p := pace(); p.Rate != 0 || p.Median != nil || len(p.Counts) != 0 {
			t.Errorf("at the start: %+v", p)
		}
		for range 20 { // 10 a second for 20 s, 5 of 100 slow
			settle(b, 9, 100*time.Millisecond)
			settle(b, 1, 4*time.Second)
			time.Sleep(time.Second)
		}
		b.Round(nil)
		p := pace()
		if p.Delivered != 200 || p.Rate < 9 || p.Rate > 11 || len(p.Counts) != 4 || p.Counts[3] != 50 {
			t.Errorf("after 20 s: %+v", p)
		}
		if m, s := *p.Median, *p.Slow; m < 0.09 || m > 0.11 || s < 3.6 || s > 4.4 {
			t.Errorf("lag: median %v, 99%% %v", m, s)
		}
		time.Sleep(10 * time.Second)
		if p := pace(); p.Rate != 0 || p.Counts[5] != 0 || p.Medians[5] != nil || *p.Waiting[5] != 0 || p.Median == nil {
			t.Errorf("10 s later: %+v", p)
		}
		b.Healthy(monitor.Health{Database: errors.New("away")})
		time.Sleep(5 * time.Second)
		if p := pace(); p.Waiting[6] != nil {
			t.Errorf("%d events wait, says a relay without a database", *p.Waiting[6])
		}
		time.Sleep(time.Hour)
		if p := pace(); len(p.Counts) != p.Steps || slices.Max(p.Counts) != 0 || p.Median != nil || p.Delivered != 200 {
			t.Errorf("an hour later: %+v", p)
		}
	})
}

// A lag of any size is counted somewhere.
func TestExtremeLags(t *testing.T) {
	t.Parallel()
	for lag, want := range map[time.Duration]float64{-time.Hour: 0.001, 0: 0.001, time.Millisecond: 0.001, time.Minute: 60, 1 << 62: 60_000} {
		b := monitor.NewBoard(monitor.About{})
		settle(b, 1, lag)
		p := b.Page(monitor.Query{}).Pace
		if *p.Median < 0.9*want || *p.Slow > 1.1*want && want < 60_000 {
			t.Errorf("%s: %v and %v, want about %v s", lag, *p.Median, *p.Slow, want)
		}
	}
}

// A browser gets the page's files and may load nothing else.
func TestPageFiles(t *testing.T) {
	t.Parallel()
	handler := serving(monitor.NewBoard(monitor.About{}))
	for path, kind := range map[string]string{
		"/": "text/html", "/page.css": "text/css", "/page.js": "text/javascript", "/icon.svg": "image/svg+xml",
	} {
		status, header, body := get(t, handler, "GET", path)
		policy := header.Get("Content-Security-Policy")
		if status != 200 || !strings.HasPrefix(header.Get("Content-Type"), kind) || body == "" || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d, %v", path, status, header)
		}
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, part) || strings.Contains(policy, "unsafe") {
				t.Errorf("%s: policy %s", path, policy)
			}
		}
		if _, _, after := get(t, handler, "HEAD", path); after != body && after != "" {
			t.Errorf("HEAD %s answers a body", path)
		}
		if status, _, _ := get(t, handler, "POST", path); status != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d, want 405", path, status)
		}
	}
}
