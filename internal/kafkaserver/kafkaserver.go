// Package kafkaserver runs real Apache Kafka under this machine's Java, for the demonstration, benchmarks and tests: one node,
// or a controller and three brokers of which any can be stopped and killed. Kafka's jars come from Maven, once for a version.
//
// Nodes listen on loopback only and end with us (on Linux).
package kafkaserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"outboxrelay/internal/childproc"
	"outboxrelay/internal/javalibs"
)

// Options say what Start starts. The zero value is one plain node.
type Options struct {
	// Brokers is 1, the default, for a node that is broker and controller in one, or 3 for three brokers and a controller
	// apart, with three replicas of each topic of which two must have what is acknowledged. Brokers have the ids 1 to 3.
	Brokers int
	// Secure has clients use TLS and SCRAM-SHA-512, and allows them only what an ACL says; see Cluster.Credentials.
	Secure bool
	// Throughput lets the JVM take the time and memory to become fast, for measurements. Starts take longer.
	Throughput bool
	// Settings are more of every broker's properties, each name=value; the last of the same name wins.
	Settings []string
	// BrokerSettings are more properties of single brokers, by id.
	BrokerSettings map[int][]string
	// Advertised are the loopback ports that brokers, by id, tell clients to connect to: those of proxies before them.
	// Traffic between brokers does not go there.
	Advertised map[int]int
}

// Cluster is a running Kafka. Methods for different nodes may be called concurrently.
type Cluster struct {
	temp       *childproc.TempDir
	brokers    []*node
	controller *node // nil when the only broker is controller as well
	secrets    *secrets
}

// Start fetches Kafka if need be, and returns once all nodes have started. ctx bounds the start only.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	c, err := start(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("start Kafka: %w", err)
	}
	return c, nil
}

func start(ctx context.Context, options Options) (*Cluster, error) {
	java, err := javalibs.Java()
	if err != nil {
		return nil, err
	}
	libs, err := Libs(ctx)
	if err != nil {
		return nil, err
	}
	temp, err := childproc.NewTempDir("relay-kafka-", nil)
	if err != nil {
		return nil, err
	}
	c := &Cluster{temp: temp}
	vm := machine{java: java, libs: libs, throughput: options.Throughput}
	if err = c.plan(options, vm); err == nil {
		err = c.run(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// run formats all nodes, then starts the controller, then the brokers.
func (c *Cluster) run(ctx context.Context) error {
	id := newClusterID()
	nodes := c.nodes()
	if err := together(nodes, func(n *node) error { return n.format(ctx, id) }); err != nil {
		return err
	}
	if c.controller != nil {
		if err := c.controller.start(ctx); err != nil {
			return err
		}
	}
	return together(c.brokers, func(n *node) error { return n.start(ctx) })
}

// Addrs returns the addresses at which the brokers listen, in the order of their ids.
func (c *Cluster) Addrs() []string {
	var addresses []string
	for _, broker := range c.brokers {
		addresses = append(addresses, childproc.Loopback(broker.ports.clients))
	}
	return addresses
}

// Kill kills a broker (SIGKILL). The others notice when its session has timed out, after 3 s.
func (c *Cluster) Kill(broker int) error {
	return c.with(broker, func(n *node) error { return n.kill() })
}

// Stop stops a broker in an orderly way: it hands over what it leads and goes. That takes some seconds.
func (c *Cluster) Stop(broker int) error {
	return c.with(broker, func(n *node) error { return n.stop() })
}

// Start starts a broker that Kill or Stop has ended, on the same data and port, and returns once it has joined the others.
func (c *Cluster) Start(ctx context.Context, broker int) error {
	return c.with(broker, func(n *node) error { return n.start(ctx) })
}

// Close kills all nodes and removes their data. Calling it again does nothing.
func (c *Cluster) Close() error {
	err := together(c.nodes(), (*node).kill)
	if c.temp != nil {
		err = errors.Join(err, c.temp.Remove())
		c.temp = nil
	}
	return err
}

func (c *Cluster) with(broker int, do func(*node) error) error {
	i := slices.IndexFunc(c.brokers, func(n *node) bool { return n.id == broker })
	if i < 0 {
		return fmt.Errorf("no Kafka broker has the id %d", broker)
	}
	return do(c.brokers[i])
}

func (c *Cluster) nodes() []*node {
	if c.controller == nil {
		return c.brokers
	}
	return append([]*node{c.controller}, c.brokers...)
}

// together runs do for all nodes at once, and returns when all are through.
func together(nodes []*node, do func(*node) error) error {
	failures := make([]error, len(nodes))
	var group sync.WaitGroup
	for i, n := range nodes {
		group.Go(func() { failures[i] = do(n) })
	}
	group.Wait()
	return errors.Join(failures...)
}

// write writes a file of a node's.
func write(dir, name, content string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)
}
