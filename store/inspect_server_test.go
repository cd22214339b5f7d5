package store_test

import (
	"bytes"
	"context"
	"net"
	"testing"

	"outboxrelay/store"
)

func TestInspectSeesAPooler(t *testing.T) {
	t.Parallel()
	in := newInspected(t)
	wantFindings(t, in.inspect(t, func(c *store.Config) { c.Dial = dialPooler }),
		warning("pooler", "a connection pooler stands in front", "RELAY_DATABASE_POOLED=true"))
	wantFindings(t, in.inspect(t, func(c *store.Config) { c.Dial, c.Pooled = dialPooler, true }))
	wantFindings(t, in.inspect(t, func(c *store.Config) { c.Pooled = true }))
}

// dialPooler connects as through a pooler, which announces a process number of its own.
func dialPooler(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &pooled{Conn: conn}, nil
}

type pooled struct {
	net.Conn
	announced bool
}

func (p *pooled) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	header := []byte{'K', 0, 0, 0, 12} // a BackendKeyData message: its length, then the number and a secret
	if at := bytes.Index(b[:n], header); at >= 0 && !p.announced {
		p.announced = true
		b[at+len(header)+3] ^= 1
	}
	return n, err
}
