package moments

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Proxy stands before a server. Close it after use.
type Proxy struct {
	upstream string
	listener net.Listener
	talk     func(*conversation) // goes on until it fails
	open     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{} // nil when the proxy is closed
}

// listen starts a proxy before a server.
func listen(address, upstream string, talk func(*conversation)) (*Proxy, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("proxy before %s: %w", upstream, err)
	}
	p := &Proxy{upstream: upstream, listener: listener, talk: talk, conns: map[net.Conn]struct{}{}}
	p.open.Go(p.accept)
	return p, nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close ends all connections.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.mu.Lock()
	for conn := range p.conns {
		_ = conn.Close() // it may be closed already
	}
	p.conns = nil
	p.mu.Unlock()
	p.open.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.open.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	defer p.forget(client)
	server, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return // the client sees its connection end
	}
	defer p.forget(server)
	if p.keep(client) && p.keep(server) {
		p.talk(&conversation{client: client, server: server})
	}
}

// keep notes a connection for Close; false if that was called already.
func (p *Proxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns != nil {
		p.conns[conn] = struct{}{}
	}
	return p.conns != nil
}

func (p *Proxy) forget(conn net.Conn) {
	_ = conn.Close() // it may be closed already
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}

// conversation is one connection.
type conversation struct{ client, server net.Conn }

var errOver = errors.New("the conversation is over")

// both runs two functions, one for each direction, until one fails; the other then fails as well.
func (c *conversation) both(requests, answers func() error) {
	var other sync.WaitGroup
	other.Go(func() {
		_ = answers() // a connection that ends is no fault here
		c.end()
	})
	_ = requests()
	c.end()
	other.Wait()
}

func (c *conversation) end() {
	_ = c.client.Close()
	_ = c.server.Close()
}

// spring lets a trap act, and ends the conversation; or holds it up, then err is nil.
func (c *conversation) spring(t *Trap) (err error) {
	acted := t.spring()
	if t.held != nil {
		if acted {
			<-t.held
		}
		return nil
	}
	c.end()
	return errOver
}

// read reads that many bytes.
func read(from io.Reader, n int) ([]byte, error) {
	buffer := make([]byte, n)
	_, err := io.ReadFull(from, buffer)
	return buffer, err
}
