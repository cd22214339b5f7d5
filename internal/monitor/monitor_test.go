package monitor_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"outboxrelay/internal/monitor"
	"outboxrelay/relay"
)

func get(t *testing.T, handler http.Handler, method, path string) (status int, header http.Header, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Code, w.Header(), w.Body.String()
}

func TestProbes(t *testing.T) {
	t.Parallel()
	var live, ready error
	handler := monitor.Handler(monitor.NewMetrics("v", "go", 1), monitor.NewBoard(monitor.About{}),
		func() error { return live }, func() error { return ready })
	for _, path := range []string{"/livez", "/readyz"} {
		if status, _, body := get(t, handler, "GET", path); status != 200 || body != "ok\n" {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
	live, ready = errors.New("a worker is stuck"), errors.New("<script>no broker")
	for path, want := range map[string]string{"/livez": "a worker is stuck\n", "/readyz": "<script>no broker\n"} {
		status, header, body := get(t, handler, "GET", path)
		if status != http.StatusServiceUnavailable || body != want {
			t.Errorf("%s: %d %q", path, status, body)
		}
		if header.Get("Content-Security-Policy") == "" || header.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.HasPrefix(header.Get("Content-Type"), "text/plain") {
			t.Errorf("%s: headers %v", path, header)
		}
	}
	if status, _, _ := get(t, handler, "POST", "/livez"); status != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d, want 405", status)
	}
	if status, _, _ := get(t, handler, "GET", "/nothing"); status != http.StatusNotFound {
		t.Errorf("/nothing: %d, want 404", status)
	}
}

// Each verdict counts under what became of its row.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	m := monitor.NewMetrics("v", "go", 3)
	row := &relay.Row{}
	claim := relay.Claim{Rows: make([]relay.Row, 6)}
	m.Claimed(claim, time.Millisecond)
	m.Published(claim, time.Millisecond)
	m.Settled(claim, []relay.Verdict{
		{Row: row, Exported: true},
		{Row: row, Exported: true},
		{Row: row, Wait: relay.Park, Error: "x"},
		{Row: row, Wait: time.Second, Error: "x"},
		{Row: row, Wait: relay.KeepDue, Refund: true},
		{Row: row, Exported: true},
	}, []relay.Result{
		{Status: relay.Written, Lag: time.Second}, {Status: relay.MarkedLate, Lag: time.Second},
		{Status: relay.Written}, {Status: relay.Written}, {Status: relay.Written}, {Status: relay.Lost},
	}, time.Millisecond)
	m.Released(claim)
	m.Backlog(monitor.Backlog{Pending: 7, Parked: 1, OldestDue: 3 * time.Second})
	m.Database(true)
	m.BrokerPaused(true)
	m.TenantsFile(false)
	_, _, body := get(t, monitor.Handler(m, nil, nil, nil), "GET", "/metrics")
	for _, line := range []string{
		`relay_events_total{outcome="exported"} 2`, `relay_events_total{outcome="parked"} 1`,
		`relay_events_total{outcome="retried"} 1`, `relay_events_total{outcome="claim_lost"} 1`,
		`relay_events_total{outcome="dead_lettered"} 0`, `relay_events_total{outcome="discarded"} 0`,
		"relay_delivery_lag_seconds_count 2", "relay_inflight_events 0", "relay_scopes 3", "relay_pending_events 7",
		"relay_parked_events 1", "relay_oldest_due_age_seconds 3", "relay_database_up 1", "relay_broker_paused 1",
		"relay_tenants_file_ok 0", `relay_build_info{goversion="go",version="v"} 1`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("no line %q in the metrics", line)
		}
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- monitor.Serve(ctx, listener, monitor.Handler(monitor.NewMetrics("v", "go", 1), nil,
			func() error { return nil }, func() error { return nil }))
	}()
	resp, err := http.Get("http://" + listener.Addr().String() + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("/livez: %d, %v", resp.StatusCode, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
}
