package dockertest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// One test, since testcontainers looks for an engine once in a process.
func TestPingTellsAnEngineFromSilence(t *testing.T) {
	var answers atomic.Bool
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answers.Load() {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte("{}"))
	}))
	t.Cleanup(engine.Close)
	t.Setenv("DOCKER_HOST", strings.Replace(engine.URL, "http", "tcp", 1))

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := Ping(ctx); err == nil {
		t.Error("Ping of a silent engine succeeded")
	}
	answers.Store(true)
	if err := Ping(t.Context()); err != nil {
		t.Errorf("Ping of an engine that answers = %v", err)
	}
}
