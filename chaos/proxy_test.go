package main

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"outboxrelay/internal/childproc"
)

// patience bounds each wait of these tests.
const patience = 20 * time.Second

// echoing gives an open proxy before a server that sends back what it gets.
func echoing(t *testing.T) *proxy {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn) // ends with the connection
				conn.Close()
			}()
		}
	}()
	ports, err := childproc.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy("echo", ports[0], server.Addr().String())
	do(t, p.open)
	t.Cleanup(func() { do(t, p.cut) })
	return p
}

func do(t *testing.T, action func() error) {
	t.Helper()
	if err := action(); err != nil {
		t.Fatal(err)
	}
}

func dial(t *testing.T, p *proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// exchange sends a byte and waits for it.
func exchange(conn net.Conn, wait time.Duration) error {
	if _, err := conn.Write([]byte{1}); err != nil {
		return err
	}
	return receive(conn, wait)
}

func receive(conn net.Conn, wait time.Duration) error {
	if err := conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, 1))
	return err
}

func expect(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

func TestProxyCuts(t *testing.T) {
	t.Parallel()
	p := echoing(t)
	conn := dial(t, p)
	expect(t, "open", exchange(conn, patience), nil)
	do(t, p.cut)
	if err := receive(conn, patience); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection that was cut: %v", err)
	}
	if refused, err := net.Dial("tcp", p.address); err == nil {
		refused.Close()
		t.Error("a cut proxy takes connections")
	}
	do(t, p.open)
	expect(t, "open again", exchange(dial(t, p), patience), nil)
}

func TestProxyDelays(t *testing.T) {
	t.Parallel()
	p := echoing(t)
	conn := dial(t, p)
	do(t, p.delay)
	begun := time.Now()
	expect(t, "delayed", exchange(conn, patience), nil)
	if took := time.Since(begun); took < delay { // half a delay each way at least
		t.Errorf("it took only %v", took)
	}
	do(t, p.clear)
	expect(t, "cleared", exchange(conn, patience), nil)
}

func TestProxySwallows(t *testing.T) {
	t.Parallel()
	p := echoing(t)
	conn := dial(t, p)
	do(t, p.blackhole)
	expect(t, "blackholed", exchange(conn, 100*time.Millisecond), os.ErrDeadlineExceeded)
	do(t, p.clear)
	expect(t, "the same connection, cleared", receive(conn, patience), io.EOF)
	expect(t, "a new connection", exchange(dial(t, p), patience), nil)
}

func TestProxyHoldsAndLetsGo(t *testing.T) {
	t.Parallel()
	p := echoing(t)
	conn := dial(t, p)
	do(t, p.hold)
	expect(t, "held", exchange(conn, 100*time.Millisecond), os.ErrDeadlineExceeded)
	do(t, p.clear)
	expect(t, "let go", receive(conn, patience), nil)
	expect(t, "afterwards", exchange(conn, patience), nil)
}
