package moments

import (
	"bufio"
	"encoding/binary"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Requests that can be waited for.
const (
	Produce        = "events"
	InitProducerID = "producer id"
	EndTxn         = "end of a transaction"
)

var requests = map[int16]string{
	kmsg.Produce.Int16(): Produce, kmsg.InitProducerID.Int16(): InitProducerID, kmsg.EndTxn.Int16(): EndTxn,
}

// Kafka starts a proxy that listens at an address, before a broker without TLS. Port 0 stands for a free one. watch gives the
// watch of a client by its client.id, nil if there is none.
func Kafka(address, upstream string, watch func(clientID string) *Watch) (*Proxy, error) {
	return listen(address, upstream, func(c *conversation) {
		k := &kafka{conversation: c, watch: watch, waiting: map[uint32]*Trap{}}
		c.both(k.requests, k.answers)
	})
}

type kafka struct {
	*conversation
	watch func(clientID string) *Watch

	mu      sync.Mutex
	waiting map[uint32]*Trap // by the correlation id of the request that is to be answered
}

// requestHeader is what stands in front of a request: its size, key, version, correlation id and the length of the client's
// id. Source: Kafka's protocol, request header.
const requestHeader = 4 + 2 + 2 + 4 + 2

func (k *kafka) requests() error {
	from := bufio.NewReader(k.client)
	for {
		request, err := frame(from)
		if err != nil {
			return err
		}
		switch trap := k.trapFor(request); {
		case trap == nil:
		case trap.moment.Stage == Sent:
			if err := k.spring(trap); err != nil {
				return err
			}
		default:
			k.mu.Lock()
			k.waiting[correlation(request[8:])] = trap
			k.mu.Unlock()
		}
		if _, err := k.server.Write(request); err != nil {
			return err
		}
	}
}

// trapFor is the trap for a request, or nil.
func (k *kafka) trapFor(request []byte) *Trap {
	what, ok := requests[int16(binary.BigEndian.Uint16(request[4:]))]
	if !ok || len(request) < requestHeader {
		return nil
	}
	id := request[requestHeader:]
	if n := int16(binary.BigEndian.Uint16(request[requestHeader-2:])); n >= 0 && int(n) <= len(id) {
		return k.watch(string(id[:n])).take(what)
	}
	return nil
}

func (k *kafka) answers() error {
	from := bufio.NewReader(k.server)
	for {
		answer, err := frame(from)
		if err != nil {
			return err
		}
		k.mu.Lock()
		trap := k.waiting[correlation(answer[4:])]
		k.mu.Unlock()
		if trap != nil && trap.moment.Stage == Done {
			return k.spring(trap)
		}
		if _, err := k.client.Write(answer); err != nil {
			return err
		}
		if trap != nil {
			return k.spring(trap)
		}
	}
}

func correlation(at []byte) uint32 { return binary.BigEndian.Uint32(at) }

// frame reads a request or an answer, its size in front.
func frame(from *bufio.Reader) ([]byte, error) {
	size, err := from.Peek(4)
	if err != nil {
		return nil, err
	}
	n := 4 + int(binary.BigEndian.Uint32(size))
	if n < 8 || n > 1<<30 {
		return nil, errOver // this is not Kafka's protocol
	}
	return read(from, n)
}
