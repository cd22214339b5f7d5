package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"outboxrelay/internal/childproc"
)

// proxy stands between relays and a server, and spoils what passes through it.
type proxy struct {
	through *toxiproxy.Proxy
	address string
}

// newProxy makes a proxy that listens on a port of loopback once it is opened.
func newProxy(name string, port int, upstream string) *proxy {
	address := childproc.Loopback(port)
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	return &proxy{toxiproxy.NewProxy(server, name, address, upstream), address}
}

// open lets connections through.
func (p *proxy) open() error {
	if err := p.through.Start(); err != nil {
		return fmt.Errorf("proxy at %s: %w", p.address, err)
	}
	return nil
}

// cut ends all connections and refuses new ones.
func (p *proxy) cut() error {
	p.through.Stop()
	return nil
}

// delay makes everything come late, both ways.
func (p *proxy) delay() error { return p.poison("latency", "latency", delay, "jitter", delay/2) }

// blackhole swallows everything. Connections stay, and end when the proxy is cleared.
func (p *proxy) blackhole() error { return p.poison("timeout", "timeout", 0) }

// hold keeps everything back. When the proxy is cleared all of it comes, also what its sender has given up by then.
func (p *proxy) hold() error { return p.poison("latency", "latency", time.Hour) }

// clear ends what delay, blackhole and hold began.
func (p *proxy) clear() error {
	p.through.Toxics.ResetToxics(context.Background())
	return nil
}

// poison adds a toxic in both directions. Its attributes are names and times.
func (p *proxy) poison(kind string, attributes ...any) error {
	var fields []string
	for i := 0; i < len(attributes); i += 2 {
		span, _ := attributes[i+1].(time.Duration)
		fields = append(fields, fmt.Sprintf("%q: %d", attributes[i], span.Milliseconds()))
	}
	for _, direction := range []string{"upstream", "downstream"} {
		toxic := fmt.Sprintf(`{"type": %q, "stream": %q, "attributes": {%s}}`, kind, direction, strings.Join(fields, ", "))
		if _, err := p.through.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			return fmt.Errorf("proxy at %s: %s: %w", p.address, kind, err)
		}
	}
	return nil
}
