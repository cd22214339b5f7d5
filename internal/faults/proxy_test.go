package faults_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// proxy is a network between the relay and a server, to be made bad.
type proxy struct {
	t    *testing.T
	link *toxiproxy.Proxy
}

// startProxy listens at an address, of which port 0 stands for a free one.
func startProxy(t *testing.T, listen, upstream string) *proxy {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := &proxy{t: t, link: toxiproxy.NewProxy(server, t.Name(), listen, upstream)}
	if err := p.link.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.link.Stop)
	return p
}

// proxied gives the address of a database behind a new proxy.
func proxied(t *testing.T, database string) (*proxy, string) {
	t.Helper()
	address, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	p := startProxy(t, "127.0.0.1:0", address.Host)
	address.Host = p.link.Listen
	return p, address.String()
}

// silence swallows all bytes both ways, without an error to anybody, until heal is called. That cuts the connections
// that suffered it.
func (p *proxy) silence() (heal func()) {
	p.t.Helper()
	up, down := p.add("timeout", "upstream", `{"timeout": 0}`), p.add("timeout", "downstream", `{"timeout": 0}`)
	return func() {
		up()
		down()
	}
}

// delay has answers come late.
func (p *proxy) delay(milliseconds int) (heal func()) {
	p.t.Helper()
	return p.add("latency", "downstream", fmt.Sprintf(`{"latency": %d}`, milliseconds))
}

func (p *proxy) add(kind, stream, attributes string) (remove func()) {
	p.t.Helper()
	name := kind + "-" + stream
	_, err := p.link.Toxics.AddToxicJson(strings.NewReader(
		fmt.Sprintf(`{"name": %q, "type": %q, "stream": %q, "attributes": %s}`, name, kind, stream, attributes)))
	if err != nil {
		p.t.Fatal(err)
	}
	return func() {
		p.t.Helper()
		if err := p.link.Toxics.RemoveToxic(context.Background(), name); err != nil {
			p.t.Error(err)
		}
	}
}
