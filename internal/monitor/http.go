package monitor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	headerTimeout = 5 * time.Second
	answerTimeout = 10 * time.Second
	closeTimeout  = 2 * time.Second
)

// Handler answers /livez, /readyz and /metrics. live and ready say what is wrong, or
// nil; their texts are shown to whoever asks.
func Handler(m *Metrics, live, ready func() error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /livez", probe(live))
	mux.Handle("GET /readyz", probe(ready))
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	return guarded(mux)
}

// probe answers 200, or 503 with the reason.
func probe(ask func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if err := ask(); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, err)
			return
		}
		fmt.Fprintln(w, "ok")
	})
}

// guarded sets the headers that keep a browser from making more of an answer than it is.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// Serve answers until ctx ends; then it returns nil.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, WriteTimeout: answerTimeout}
	stop := context.AfterFunc(ctx, func() {
		late, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		_ = server.Shutdown(late) // a client that hangs on is cut off with the process
	})
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
