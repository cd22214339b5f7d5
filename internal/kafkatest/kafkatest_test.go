package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestBrokers runs the same cases on each kind of broker, so that a quick test on the fake one means something.
func TestBrokers(t *testing.T) {
	t.Parallel()
	for name, broker := range map[string]func(testing.TB) *Broker{
		"plain":   Plain,
		"fake":    func(t testing.TB) *Broker { return Fake(t).Broker },
		"secured": func(t testing.TB) *Broker { return Secure(t).Broker },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := broker(t)
			t.Run("all and consume", func(t *testing.T) { testReading(t, broker) })
			t.Run("transactions", func(t *testing.T) { testTransactions(t, broker) })
			t.Run("topic", func(t *testing.T) { testTopic(t, broker) })
		})
	}
}

func testReading(t *testing.T, broker *Broker) {
	topic := broker.Topic(t, 3, nil)
	if got := broker.All(t, topic); len(got) != 0 {
		t.Errorf("%d records in a new topic", len(got))
	}
	client := broker.Client(t)
	for n := range 7 {
		produce(t, client, topic, fmt.Sprint("key ", n%2), fmt.Sprint(n))
	}
	want := []string{"0", "1", "2", "3", "4", "5", "6"}
	for name, records := range map[string][]*kgo.Record{"All": broker.All(t, topic), "Consume": broker.Consume(t, topic, 7)} {
		values := valuesOf(records)
		slices.Sort(values)
		if !slices.Equal(values, want) {
			t.Errorf("%s = %q, want %q", name, values, want)
		}
	}
	if got := broker.Consume(t, topic, 2); len(got) != 2 {
		t.Errorf("Consume of 2 returned %d records", len(got))
	}
}

func testTransactions(t *testing.T, broker *Broker) {
	topic := broker.Topic(t, 1, nil)
	client := broker.Client(t, kgo.TransactionalID(Name("writer")))
	for _, step := range []struct {
		value string
		end   kgo.TransactionEndTry
	}{{"committed", kgo.TryCommit}, {"aborted", kgo.TryAbort}} {
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		produce(t, client, topic, "", step.value)
		if err := client.EndTransaction(t.Context(), step.end); err != nil {
			t.Fatal(err)
		}
	}
	if got := valuesOf(broker.All(t, topic)); !slices.Equal(got, []string{"committed"}) {
		t.Errorf("All = %q, want the committed record alone", got)
	}
	uncommitted := broker.Consume(t, topic, 2, kgo.FetchIsolationLevel(kgo.ReadUncommitted()))
	if got := valuesOf(uncommitted); !slices.Equal(got, []string{"committed", "aborted"}) {
		t.Errorf("Consume uncommitted = %q, want both records", got)
	}
}

func testTopic(t *testing.T, broker *Broker) {
	var topic string
	t.Run("user", func(t *testing.T) {
		topic = broker.Topic(t, 2, map[string]string{"cleanup.policy": "compact"})
		configs, err := broker.Admin(t).DescribeTopicConfigs(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		for _, config := range configs[0].Configs {
			if config.Key == "cleanup.policy" && config.MaybeValue() != "compact" {
				t.Errorf("cleanup.policy = %s, want the given one", config.MaybeValue())
			}
		}
	})
	if broker.own {
		return
	}
	admin := broker.Admin(t)
	ctx, cancel := step()
	defer cancel()
	await(t, ctx, "end of topic", func() error {
		topics, err := admin.ListTopics(ctx, topic)
		if err == nil && !errors.Is(topics[topic].Err, kerr.UnknownTopicOrPartition) {
			err = fmt.Errorf("topic is still there: %v", topics[topic].Err)
		}
		return err
	})
}

func TestSecuredUserMayDoOnlyWhatIsAllowed(t *testing.T) {
	t.Parallel()
	secured := Secure(t)
	topic, user := secured.Topic(t, 1, nil), secured.User(t)
	client := secured.As(t, user).Client(t)

	record := &kgo.Record{Topic: topic, Value: []byte("event")}
	if err := client.ProduceSync(t.Context(), record).FirstErr(); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("produce without a right = %v, want TOPIC_AUTHORIZATION_FAILED", err)
	}
	secured.Allow(t, user, kadm.NewACLs().Topics(topic).
		ResourcePatternType(kadm.ACLPatternLiteral).
		Operations(kadm.OpWrite, kadm.OpDescribe))
	produce(t, secured.As(t, user).Client(t), topic, "", "event")

	if pem, err := os.ReadFile(secured.CAFile(t)); err != nil || !strings.Contains(string(pem), "BEGIN CERTIFICATE") {
		t.Errorf("CAFile holds %q, %v", pem, err)
	}
}

func TestClusterOutlivesABroker(t *testing.T) {
	t.Parallel()
	cluster := Cluster(t)
	topic := cluster.Topic(t, 3, nil)
	client := cluster.Client(t)
	for partition := range 3 {
		produce(t, client, topic, fmt.Sprint(partition), "before")
	}
	if err := cluster.Server.Kill(2); err != nil {
		t.Fatal(err)
	}
	produce(t, client, topic, "", "after")
	if got := len(cluster.All(t, topic)); got != 4 {
		t.Errorf("%d records, want 4", got)
	}
}

func TestMalformedSecretIsNotShown(t *testing.T) {
	t.Setenv(SecureVariable, `{"password": "secret", "addrs": 7}`)
	_, _, err := StartSecure(context.Background())
	if err == nil || !strings.Contains(err.Error(), SecureVariable) || strings.Contains(err.Error(), "secret") {
		t.Errorf("StartSecure = %v, want the variable's name without its contents", err)
	}
}

func produce(t *testing.T, client *kgo.Client, topic, key, value string) {
	t.Helper()
	record := &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(value)}
	if err := client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
		t.Fatalf("produce: %v", err)
	}
}

func valuesOf(records []*kgo.Record) []string {
	var values []string
	for _, record := range records {
		values = append(values, string(record.Value))
	}
	return values
}
