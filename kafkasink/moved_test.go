package kafkasink

import (
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kfake"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/relay"
)

// TestBrokersMove: all brokers are at other addresses than before, behind the name that the relay was given, as after all of
// their containers were made anew. The addresses that the client has learnt lead nowhere.
func TestBrokersMove(t *testing.T) {
	t.Parallel()
	cluster := func() *kafkatest.Faked { return kafkatest.Fake(t, kfake.SeedTopics(1, "events")) }
	first := cluster()
	name := startName(t, first.Addrs[0])
	cfg := config(&kafkatest.Broker{Addrs: []string{name.address}}, "events")
	cfg.DeliveryTimeout = impatient
	sink := openReady(t, cfg, quick())
	publish(t, sink, event(t, uuid.New(), 1, 10)).wantAll(relay.Delivered)

	for range 2 {
		second := cluster()
		name.target.Store(second.Addrs[0])
		first.Cluster.Close()
		e := event(t, uuid.New(), 1, 10)
		waitFor(t, "an event to arrive", func() error {
			if err := sink.Ready(envelope.NonTenant()); err != nil {
				return err
			}
			return publish(t, sink, e).wait()[0]
		})
		if got := ids(t, second.Broker, "events"); len(got) != 1 || got[0] != e.ID() {
			t.Errorf("the new broker has %q, want %s", got, e.ID())
		}
		first = second
	}
}

// hostname is an address that leads to whichever broker has it at present.
type hostname struct {
	address string
	target  atomic.Value // string
}

func startName(t *testing.T, target string) *hostname {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	n := &hostname{address: listener.Addr().String()}
	n.target.Store(target)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // the test has ended
			}
			go n.pass(conn)
		}
	}()
	return n
}

// pass connects two sides until one of them ends.
func (n *hostname) pass(conn net.Conn) {
	defer conn.Close()
	there, err := net.Dial("tcp", n.target.Load().(string))
	if err != nil {
		return
	}
	defer there.Close()
	ended := make(chan struct{}, 2)
	for from, to := range map[net.Conn]net.Conn{conn: there, there: conn} {
		go func() {
			_, _ = io.Copy(to, from)
			ended <- struct{}{}
		}()
	}
	<-ended
}
