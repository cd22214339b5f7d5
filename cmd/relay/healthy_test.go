package main

import (
	"errors"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"outboxrelay/internal/monitor"
)

// The health check is about the loop alone, and needs nothing but the address: also one
// that listens everywhere.
func TestHealthyAsksTheRelay(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name           string
		live           error
		status         int
		stdout, stderr string
	}{
		{"alive", nil, statusDone, "ok\n", ""},
		{"stuck", errors.New("a worker has made no step for 5m0s"), statusError, "", "relay healthy: not healthy: a worker has made no step for 5m0s\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(monitor.Handler(monitor.NewMetrics("v", "go", 1), nil,
				func() error { return test.live }, func() error { return errors.New("no broker") }))
			t.Cleanup(server.Close)
			_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
			env := map[string]string{"RELAY_HTTP_ADDRESS": ":" + port, "RELAY_TENANTS_FILE": "/gone"}
			status, stdout, stderr := runCommand(t, env, "healthy")
			if status != test.status || stdout != test.stdout || stderr != test.stderr {
				t.Errorf("status %d, %q, %q", status, stdout, stderr)
			}
		})
	}
}

func TestHealthyTellsWhyNot(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	for name, test := range map[string]struct {
		address string
		args    []string
		status  int
		says    string
	}{
		"nobody there": {address, []string{"healthy"}, statusError, "ask the relay on " + address},
		"off":          {"off", []string{"healthy"}, statusError, "--no-healthcheck"},
		"no address":   {"here", []string{"healthy"}, statusUsage, "RELAY_HTTP_ADDRESS"},
		"an argument":  {"", []string{"healthy", "now"}, statusUsage, "unexpected argument"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, _, stderr := runCommand(t, map[string]string{"RELAY_HTTP_ADDRESS": test.address}, test.args...)
			if status != test.status || !strings.Contains(stderr, test.says) {
				t.Errorf("status %d: %q, want %d with %q", status, stderr, test.status, test.says)
			}
		})
	}
}
