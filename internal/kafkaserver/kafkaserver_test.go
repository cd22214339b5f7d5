package kafkaserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"outboxrelay/internal/childproc"
)

func TestSingleNode(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, Options{Settings: []string{"message.max.bytes=54321"}})
	client := connect(t, kgo.SeedBrokers(cluster.Addrs()...))
	createTopic(t, client, "events")
	produce(t, client, "events")

	configs, err := kadm.NewClient(client).DescribeBrokerConfigs(deadline(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := config(configs[0], "message.max.bytes"); got != "54321" {
		t.Errorf("message.max.bytes = %s, want the given setting", got)
	}

	for range 2 {
		if err := cluster.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
	if _, err := os.Stat(cluster.brokers[0].dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder after Close: %v, want it gone", err)
	}
}

func TestAdvertisedPortIsWhatClientsSee(t *testing.T) {
	t.Parallel()
	ports, err := childproc.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	// Throughput is here to see that the JVM takes its flags.
	cluster := startCluster(t, Options{Advertised: map[int]int{1: ports[0]}, Throughput: true})
	brokers, err := kadm.NewClient(connect(t, kgo.SeedBrokers(cluster.Addrs()...))).ListBrokers(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(brokers) != 1 || int(brokers[0].Port) != ports[0] {
		t.Errorf("brokers %+v, want one at the advertised port %d", brokers, ports[0])
	}
}

func TestThreeBrokersLoseTwoAndRecover(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, Options{Brokers: 3})
	client := connect(t, kgo.SeedBrokers(cluster.Addrs()...), kgo.RecordRetries(3), kgo.AllowIdempotentProduceCancellation())
	createTopic(t, client, "events")
	produce(t, client, "events")

	if err := cluster.Kill(1); err != nil {
		t.Fatal(err)
	}
	awaitReplicas(t, client, "events", 2)
	produce(t, client, "events")
	if err := cluster.Stop(2); err != nil {
		t.Fatal(err)
	}
	awaitReplicas(t, client, "events", 1)
	if err := client.ProduceSync(deadline(t), record("events")).FirstErr(); !errors.Is(err, kerr.NotEnoughReplicas) {
		t.Errorf("produce with one of three brokers left = %v, want NOT_ENOUGH_REPLICAS", err)
	}
	for _, broker := range []int{1, 2} {
		if err := cluster.Start(deadline(t), broker); err != nil {
			t.Fatal(err)
		}
	}
	awaitReplicas(t, client, "events", 3)
	produce(t, client, "events")

	if err := cluster.Start(deadline(t), 1); err == nil {
		t.Error("Start of a running broker succeeded")
	}
	if err := cluster.Kill(4); err == nil {
		t.Error("Kill of a broker that does not exist succeeded")
	}
}

func TestSecuredNodeLetsOnlyItsUsersIn(t *testing.T) {
	t.Parallel()
	credentials := startCluster(t, Options{Secure: true}).Credentials()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(credentials.CA)) {
		t.Fatal("CA is no PEM certificate")
	}
	secured := func(password string) *kgo.Client {
		return connect(t, kgo.SeedBrokers(credentials.Addrs...),
			kgo.DialTLSConfig(&tls.Config{RootCAs: pool}),
			kgo.SASL(scram.Auth{User: credentials.Username, Pass: password}.AsSha512Mechanism()))
	}
	admin := secured(credentials.Password)
	createTopic(t, admin, "events")
	produce(t, admin, "events")

	if err := secured("wrong").Ping(deadline(t)); !errors.Is(err, kerr.SaslAuthenticationFailed) {
		t.Errorf("ping with a wrong password = %v, want SASL_AUTHENTICATION_FAILED", err)
	}
	untrusting := connect(t, kgo.SeedBrokers(credentials.Addrs...), kgo.DialTLSConfig(&tls.Config{}))
	var unknown x509.UnknownAuthorityError
	if err := untrusting.Ping(deadline(t)); !errors.As(err, &unknown) {
		t.Errorf("ping without the CA = %v, want an unknown authority", err)
	}
}

func startCluster(t *testing.T, options Options) *Cluster {
	t.Helper()
	cluster, err := Start(deadline(t), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return cluster
}

func connect(t *testing.T, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(options, kgo.MetadataMinAge(100*time.Millisecond))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func createTopic(t *testing.T, client *kgo.Client, topic string) {
	t.Helper()
	if _, err := kadm.NewClient(client).CreateTopic(deadline(t), 1, -1, nil, topic); err != nil {
		t.Fatal(err)
	}
}

func record(topic string) *kgo.Record { return &kgo.Record{Topic: topic, Value: []byte("event")} }

func produce(t *testing.T, client *kgo.Client, topic string) {
	t.Helper()
	if err := client.ProduceSync(deadline(t), record(topic)).FirstErr(); err != nil {
		t.Fatalf("produce: %v", err)
	}
}

// awaitReplicas waits until a topic's only partition has n replicas in sync.
func awaitReplicas(t *testing.T, client *kgo.Client, topic string, n int) {
	t.Helper()
	ctx := deadline(t)
	for {
		topics, err := kadm.NewClient(client).ListTopics(ctx, topic)
		if err == nil {
			if got := len(topics[topic].Partitions[0].ISR); got == n {
				return
			} else {
				err = fmt.Errorf("%d replicas", got)
			}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("topic never had %d replicas in sync: %v", n, err)
		}
	}
}

func config(resource kadm.ResourceConfig, name string) string {
	for _, c := range resource.Configs {
		if c.Key == name {
			return c.MaybeValue()
		}
	}
	return ""
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
