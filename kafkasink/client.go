package kafkasink

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// client is a producing client, and the terms on which it sends to each topic. It keeps
// to those of its first record for a topic, so changed terms need another client.
type client struct {
	*kgo.Client
	handing
	current func(topic string) terms
	made    time.Time

	mu      sync.Mutex
	used    map[string]terms
	offline error // why the last try to connect failed
}

// terms are what must not change while a client sends to a topic: which topic of that
// name it is, and the largest batch that brokers take.
type terms struct {
	id    [16]byte
	limit int
}

// most is the largest batch, with the length before it, that is sent on these terms.
func (t terms) most() int { return min(max(t.limit, leastLimit), mostLimit) }

var _ kgo.HookBrokerConnect = (*client)(nil)

func newClient(cfg Config, current func(topic string) terms, more ...kgo.Opt) (*client, error) {
	opts, err := cfg.Options()
	if err != nil {
		return nil, err
	}
	codec, err := compression(cfg.Compression)
	if err != nil {
		return nil, err
	}
	c := &client{current: current, made: time.Now(), used: map[string]terms{}, handing: handing{severed: make(chan struct{})}}
	opts = append(opts,
		kgo.Dialer(func(ctx context.Context, network, host string) (net.Conn, error) {
			conn, err := cfg.dial(ctx, network, host)
			if err != nil {
				return nil, err
			}
			return gate{conn, &c.handing}, nil
		}),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		// With a nil hasher, Kafka's own: murmur2 over the key.
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		kgo.ProducerBatchCompression(codec...),
		kgo.ProducerBatchMaxBytesFn(func(topic string) int32 { return int32(c.limit(topic)) }),
		kgo.ProducerLinger(linger),
		kgo.RecordDeliveryTimeout(cfg.DeliveryTimeout),
		// The sink keeps count itself: a record that the client refuses for want of room
		// would let the next of its operation overtake.
		kgo.MaxBufferedRecords(1<<30),
		kgo.WithHooks(append(slices.Clone(cfg.Hooks), c)...),
	)
	c.Client, err = kgo.NewClient(append(opts, more...)...)
	return c, err
}

func compression(name string) ([]kgo.CompressionCodec, error) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	codec, ok := codecs[name]
	if !ok {
		return nil, fmt.Errorf("unknown compression %q", name)
	}
	return []kgo.CompressionCodec{codec, kgo.NoCompression()}, nil
}

// OnBrokerConnect implements [kgo.HookBrokerConnect]. A request that is tried again until
// its time is over does not say what kept it from being sent.
func (c *client) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offline = err
}

func (c *client) whyOffline() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offline
}

// limit is the largest batch, with the length before it, that the client sends to a
// topic. An event above it must be kept from the client, which would refuse it and let
// the next of its operation pass.
func (c *client) limit(topic string) int {
	if topic == "" {
		return defaultLimit // the client checks its settings with this
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.used[topic]
	if !ok {
		t = c.current(topic)
		c.used[topic] = t
	}
	return t.most()
}

// outdated reports whether the terms of a topic have changed since they were used.
func (c *client) outdated() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for topic, used := range c.used {
		if c.current(topic) != used {
			return true
		}
	}
	return false
}
