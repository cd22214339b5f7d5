package monitor

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	headerTimeout = 5 * time.Second
	answerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	closeTimeout  = 2 * time.Second
)

//go:embed page
var pageFiles embed.FS

// Handler answers the probes, /metrics, /status and the page. live and ready say what is
// wrong, or nil; their texts are shown to whoever asks.
func Handler(m *Metrics, b *Board, live, ready func() error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /livez", probe(live))
	mux.Handle("GET /readyz", probe(ready))
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	mux.Handle("GET /status", answer(func(*http.Request) any { return b.Status() }))
	mux.Handle("GET /page.json", answer(func(r *http.Request) any { return b.Page(query(r)) }))
	for path, file := range map[string]string{
		"/{$}": "index.html", "/page.css": "page.css", "/page.js": "page.js", "/icon.svg": "icon.svg",
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-cache")
			http.ServeFileFS(w, r, pageFiles, "page/"+file)
		})
	}
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

// answer answers with JSON.
func answer(ask func(*http.Request) any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(ask(r)) // a reader that is gone needs no answer
	})
}

// query reads which scopes are asked for. What it can't read counts as not given.
func query(r *http.Request) Query {
	values := r.URL.Query()
	limit, _ := strconv.Atoi(values.Get("limit"))
	return Query{Find: values.Get("find"), Order: values.Get("order"), Limit: limit}
}

// policy lets a browser load the page's own files and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guarded sets the headers that keep a browser from making more of an answer than it is.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		next.ServeHTTP(w, r)
	})
}

// Serve answers until ctx ends; then it returns nil.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout}
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
