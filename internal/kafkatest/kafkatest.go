// Package kafkatest gives tests a Kafka to work on: real brokers shared by a process, each test with topics of its own; a
// real cluster of the test's own to stop and kill; and a fake one for quick tests.
//
// The shared broker is the one that RELAY_TEST_KAFKA names (host:port, more than one separated by commas), else one in a
// container where a Docker engine answers, else one under this machine's Java. The secured one is that of
// RELAY_TEST_KAFKA_SECURE, else one under this machine's Java.
package kafkatest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/internal/kafkaserver"
)

// patience bounds each single step here. It is long because a busy machine answers slowly.
const patience = time.Minute

// Broker is a Kafka to talk to, of one broker or more.
type Broker struct {
	Addrs    []string
	security []kgo.Opt
	own      bool // the test's own: its topics go with it
}

// shared and sharedSecure are the process's brokers. They are package variables because a package's tests share nothing
// else, and start nothing until the first test asks.
var (
	shared = sync.OnceValues(func() ([]string, error) {
		// Nothing stops it: no test is the process's last. A broker of our own ends with the process.
		addrs, _, err := Start(context.Background())
		return addrs, err
	})
	sharedSecure = sync.OnceValues(func() (kafkaserver.Credentials, error) {
		credentials, _, err := StartSecure(context.Background())
		return credentials, err
	})
)

// Plain returns the process's plain broker. Its topics have one replica.
func Plain(t testing.TB) *Broker {
	t.Helper()
	addrs, err := shared()
	if err != nil {
		t.Fatalf("kafkatest: no Kafka broker for the tests: %v", err)
	}
	return &Broker{Addrs: addrs}
}

// Own is a Kafka of the test's own.
type Own struct {
	*Broker
	Server *kafkaserver.Cluster
}

// Cluster starts three brokers and a controller for this test alone, which may stop and kill them. Topics have three
// replicas, of which two must have what is acknowledged.
func Cluster(t testing.TB) *Own {
	t.Helper()
	return Server(t, kafkaserver.Options{Brokers: 3})
}

// Server starts what options say for this test alone. With options.Secure its Broker is the administrator's.
func Server(t testing.TB, options kafkaserver.Options) *Own {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	server, err := kafkaserver.Start(ctx, options)
	if err != nil {
		t.Fatalf("kafkatest: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("kafkatest: %v", err)
		}
	})
	broker := &Broker{Addrs: server.Addrs(), own: true}
	if options.Secure {
		credentials := server.Credentials()
		broker.security = security(t, credentials.CA, User{Name: credentials.Username, Password: credentials.Password})
	}
	return &Own{Broker: broker, Server: server}
}

// Faked is a fake cluster in this process: quick, but all its brokers are one, and no proof of how a real one behaves.
type Faked struct {
	*Broker
	Cluster *kfake.Cluster
}

// Fake starts a fake cluster for this test alone, of one broker if options do not say otherwise.
func Fake(t testing.TB, options ...kfake.Opt) *Faked {
	t.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, options...)...)
	if err != nil {
		t.Fatalf("kafkatest: fake cluster: %v", err)
	}
	t.Cleanup(cluster.Close)
	return &Faked{Broker: &Broker{Addrs: cluster.ListenAddrs(), own: true}, Cluster: cluster}
}

// Options are what a client needs to talk to the broker, and to see new topics and leaders soon.
func (b *Broker) Options() []kgo.Opt {
	return append(slices.Clone(b.security), kgo.SeedBrokers(b.Addrs...), kgo.MetadataMinAge(100*time.Millisecond))
}

// Client opens a client that is closed when the test ends. Options come after the broker's own.
func (b *Broker) Client(t testing.TB, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(b.Options(), options...)...)
	if err != nil {
		t.Fatalf("kafkatest: %v", err)
	}
	t.Cleanup(client.Close)
	return client
}

// Admin opens an administrator's client that is closed when the test ends.
func (b *Broker) Admin(t testing.TB) *kadm.Client {
	t.Helper()
	return kadm.NewClient(b.Client(t))
}

// step returns a context for one step, and a test's end does not cut it short.
func step() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

// With returns the broker as clients with more options see it.
func (b *Broker) With(options ...kgo.Opt) *Broker {
	return &Broker{Addrs: b.Addrs, own: b.own, security: append(slices.Clone(b.security), options...)}
}
