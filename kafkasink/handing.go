package kafkasink

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// handing keeps an event from overtaking an earlier one of its operation that failed.
//
// When a record fails, the client fails all that it holds of the partition, and takes the next
// one as if nothing had been. So if the first event of an operation fails before the second is
// handed over, the second would go out alone. Therefore
//
//   - no write to a broker begins while events are handed over,
//   - before anything may be written again, it is found out what has failed meanwhile, and
//   - if that was an event with a later one of its operation behind it, this client writes nothing
//     any more: it is severed, and has to be replaced.
//
// Answers of brokers wait, too, so that this happens seldom: what had been read already, or fails
// for other reasons, does not wait.
type handing struct {
	going    sync.RWMutex  // shared while events are handed over
	severed  chan struct{} // closed when the client writes nothing any more
	severing sync.Once
}

var _ kgo.HookBrokerRead = (*client)(nil)

// errSevered is one of the network, which the client tries again and does not blame on a record.
var errSevered = &net.OpError{Op: "write", Net: "tcp", Err: errors.New("the client is severed, because an earlier event of an operation failed")}

// handOver hands events to the client, those of an operation in their order. answer is called
// once for each, from one goroutine, and must not hand over any itself.
func (c *client) handOver(records []*kgo.Record, answer func(n int, err error)) {
	c.going.RLock()
	defer c.going.RUnlock()
	failed := map[int]bool{}
	for n, r := range records {
		// No context of the caller: cancelling a record in flight could make the next
		// one look delivered.
		c.TryProduce(context.Background(), r, func(_ *kgo.Record, err error) {
			if err != nil {
				failed[n] = true
			}
			answer(n, err)
		})
	}
	if len(records) < 2 {
		return
	}
	looked := make(chan struct{})
	// A record of no topic fails at once, and promises are kept one after the other: by then,
	// those of all that has failed before were.
	c.TryProduce(context.Background(), &kgo.Record{}, func(*kgo.Record, error) {
		defer close(looked)
		if overtakes(records, failed) {
			c.severing.Do(func() { close(c.severed) })
		}
	})
	<-looked
}

// overtakes is true if an event has not failed, and an earlier one of its operation has.
func overtakes(records []*kgo.Record, failed map[int]bool) bool {
	if len(failed) == 0 {
		return false
	}
	behind := map[string]bool{}
	for n, r := range records {
		if failed[n] {
			behind[string(r.Key)] = true
		} else if behind[string(r.Key)] {
			return true
		}
	}
	return false
}

// OnBrokerRead implements [kgo.HookBrokerRead]. The client calls it before it deals with
// what it has read.
func (c *client) OnBrokerRead(kgo.BrokerMetadata, int16, int, time.Duration, time.Duration, error) {
	c.afterHanding()
}

// afterHanding waits until no events are being handed over.
func (h *handing) afterHanding() {
	h.going.Lock()
	defer h.going.Unlock()
}

// gate is a connection that is written to only while no events are handed over.
type gate struct {
	net.Conn
	*handing
}

// Write implements [net.Conn].
func (g gate) Write(b []byte) (int, error) {
	g.afterHanding()
	select {
	case <-g.severed:
		return 0, errSevered
	default:
		return g.Conn.Write(b)
	}
}
