package kafkasink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/relay"
)

// wantReason waits until the sink isn't ready and says why with all the words.
func wantReason(t *testing.T, sink *Sink, words ...string) {
	t.Helper()
	waitFor(t, "the reason", func() error {
		err := sink.Ready(envelope.NonTenant())
		if err == nil {
			return errors.New("the sink is ready")
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				return fmt.Errorf("%w (lacks %q)", err, word)
			}
		}
		return nil
	})
}

func wantReady(t *testing.T, sink *Sink) {
	t.Helper()
	waitFor(t, "the sink to be ready", func() error { return sink.Ready(envelope.NonTenant()) })
}

// set changes a setting of a topic.
func set(t *testing.T, broker *kafkatest.Broker, topic, name, value string) {
	t.Helper()
	answers, err := broker.Admin(t).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: name, Value: &value}}, topic)
	if err == nil && answers[0].Err != nil {
		err = answers[0].Err
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestMissingTopic(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		topic := kafkatest.Name("later")
		sink := open(t, config(broker, topic), quick())
		wantReason(t, sink, topic, "does not exist")
		broker.CreateTopic(t, topic, 1, nil)
		wantReady(t, sink)
		publish(t, sink, event(t, uuid.New(), 1, 10)).wantAll(relay.Delivered)
	})
}

func TestTooFewReplicas(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Fake(t, kfake.NumBrokers(3))
	topic := broker.Topic(t, 1, map[string]string{"min.insync.replicas": "1"})
	cfg := config(broker.Broker, topic)
	cfg.MinInsyncReplicas = 2
	sink := open(t, cfg, quick())
	wantReason(t, sink, topic, "min.insync.replicas=1", "RELAY_KAFKA_MIN_INSYNC_REPLICAS is 2", "set RELAY_KAFKA_MIN_INSYNC_REPLICAS=1")
	set(t, broker.Broker, topic, "min.insync.replicas", "2")
	wantReady(t, sink)
	set(t, broker.Broker, topic, "min.insync.replicas", "4")
	wantReason(t, sink, topic, "3 replicas", "min.insync.replicas=4", "brokers refuse every event")
}

// TestRightsAreNamedAndTakenUp takes a user from no rights to all that the relay needs.
func TestRightsAreNamedAndTakenUp(t *testing.T) {
	t.Parallel()
	secured := kafkatest.Secure(t)
	topic, user := secured.Topic(t, 1, nil), secured.User(t)
	cfg := config(secured.Broker, topic)
	cfg.TLS = &TLS{CAFile: secured.CAFile(t)}
	cfg.SASL = &SASL{Mechanism: "SCRAM-SHA-512", Username: user.Name, Password: func() (string, error) { return user.Password, nil }}
	sink := open(t, cfg, quick())
	allow := func(operations ...kadm.ACLOperation) {
		secured.Allow(t, user, kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral).Operations(operations...))
	}
	wantReason(t, sink, topic, "grant DESCRIBE")
	allow(kadm.OpDescribe)
	wantReason(t, sink, topic, "grant WRITE, DESCRIBE_CONFIGS")
	allow(kadm.OpDescribeConfigs)
	wantReason(t, sink, topic, "grant WRITE on it")
	allow(kadm.OpWrite)
	wantReady(t, sink)
	publish(t, sink, event(t, uuid.New(), 1, 10)).wantAll(relay.Delivered)
}

// TestOneBadTopicStopsNoOther: each scope has its own reason, or none.
func TestOneBadTopicStopsNoOther(t *testing.T) {
	t.Parallel()
	secured := kafkatest.Secure(t)
	good, bad, user := secured.Topic(t, 1, nil), secured.Topic(t, 1, nil), secured.User(t)
	for topic, operations := range map[string][]kadm.ACLOperation{
		good: {kadm.OpWrite, kadm.OpDescribeConfigs}, bad: {kadm.OpWrite},
	} {
		secured.Allow(t, user, kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral).Operations(operations...))
	}
	tenant, err := envelope.Tenant("a")
	if err != nil {
		t.Fatal(err)
	}
	cfg := config(secured.Broker, "")
	cfg.Topic = func(s envelope.Scope) string {
		if s == tenant {
			return bad
		}
		return good
	}
	cfg.TLS = &TLS{CAFile: secured.CAFile(t)}
	cfg.SASL = &SASL{Mechanism: "SCRAM-SHA-512", Username: user.Name, Password: func() (string, error) { return user.Password, nil }}
	sink := open(t, cfg, quick())
	waitFor(t, "the bad topic's reason", func() error {
		if err := sink.Ready(tenant); err == nil || !strings.Contains(err.Error(), "DESCRIBE_CONFIGS") {
			return fmt.Errorf("ready = %v", err)
		}
		return nil
	})
	wantReady(t, sink)
}

func TestBrokerAway(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	cfg := config(&kafkatest.Broker{Addrs: []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}}, "events")
	cfg.DeliveryTimeout = time.Second
	pace := quick()
	pace.ask, pace.stuck = time.Second, 1500*time.Millisecond
	sink := open(t, cfg, pace)
	wantReason(t, sink, cfg.Brokers[0], "refused")
	if seen, err := sink.Health(); err == nil || !seen.IsZero() {
		t.Errorf("Health = %v, %v, want no broker seen and an error", seen, err)
	}
	// Twice, because the second cluster's topic of that name is another one.
	for range 2 {
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port), kfake.SeedTopics(1, "events"))
		if err != nil {
			t.Fatal(err)
		}
		stop := context.AfterFunc(t.Context(), cluster.Close)
		waitFor(t, "an event to arrive", func() error {
			if err := sink.Ready(envelope.NonTenant()); err != nil {
				return err
			}
			return publish(t, sink, event(t, uuid.New(), 1, 10)).wait()[0]
		})
		if seen, err := sink.Health(); err != nil || time.Since(seen) > patience {
			t.Errorf("Health = %v, %v", seen, err)
		}
		if stop() {
			cluster.Close()
		}
		err = publish(t, sink, event(t, uuid.New(), 1, 10)).wait()[0]
		switch class := relay.ClassOf(err); class {
		case relay.Environment, relay.NotAttempted, relay.Unknown: // as far as it got
		default:
			t.Errorf("while the broker was away an event was answered as %s: %v", class, err)
		}
		wantReason(t, sink, cfg.Brokers[0], "refused")
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func TestRaisedLimitIsTakenUp(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		topic := broker.Topic(t, 1, map[string]string{"max.message.bytes": "10000"})
		sink := openReady(t, config(broker, topic), quick())
		large := event(t, uuid.New(), 1, 20_000)
		publish(t, sink, large, event(t, uuid.New(), 1, 10)).want(relay.RowFault, relay.Delivered)
		set(t, broker, topic, "max.message.bytes", "100000")
		waitFor(t, "the new limit", func() error {
			if got := sink.current().limit(topic); got != 100_000 {
				return fmt.Errorf("the limit is %d", got)
			}
			return nil
		})
		publish(t, sink, large).wantAll(relay.Delivered)
	})
}

// TestLoweredLimitLosesNothing lowers it behind the sink's back, which then learns of it from the broker's refusal only.
func TestLoweredLimitLosesNothing(t *testing.T) {
	both(t, func(t *testing.T, broker *kafkatest.Broker) {
		topic := broker.Topic(t, 1, map[string]string{"max.message.bytes": "100000"})
		pace := quick()
		pace.settings = time.Hour
		sink := openReady(t, config(broker, topic), pace)
		publish(t, sink, event(t, uuid.New(), 1, 10)).wantAll(relay.Delivered)
		set(t, broker, topic, "max.message.bytes", "10000")
		waitFor(t, "the leader to know the new limit", func() error { return refusal(t, broker, topic) })
		before := len(ids(t, broker, topic))

		events := []envelope.Event{event(t, uuid.New(), 1, 20_000)}
		for range 100 {
			events = append(events, event(t, uuid.New(), 1, 500))
		}
		faults, delivered := 0, 0
		for attempt := 0; len(events) > 0; attempt++ {
			wantReady(t, sink)
			var again []envelope.Event
			for i, err := range publish(t, sink, events...).wait() {
				switch relay.ClassOf(err) {
				case relay.Delivered:
					delivered++
				case relay.RowFault:
					if faults++; len(events[i].Data) < 20_000 {
						t.Errorf("event of %d bytes: %v", len(events[i].Data), err)
					}
				case relay.NotAttempted:
					again = append(again, events[i])
				default:
					t.Errorf("event of %d bytes was answered as %s: %v", len(events[i].Data), relay.ClassOf(err), err)
				}
			}
			if events = again; attempt == 5 {
				t.Fatalf("%d events were sent in vain %d times", len(events), attempt)
			}
		}
		if faults != 1 || delivered != 100 {
			t.Errorf("%d faults and %d delivered, want 1 and 100", faults, delivered)
		}
		if got := len(ids(t, broker, topic)) - before; got != 100 {
			t.Errorf("the topic got %d events, want 100", got)
		}
	})
}

// refusal gives no error once the topic's leader refuses a batch of 20,000 bytes.
func refusal(t *testing.T, broker *kafkatest.Broker, topic string) error {
	t.Helper()
	large := event(t, uuid.New(), 1, 20_000)
	if err := broker.Client(t, kgo.ProducerBatchCompression(kgo.NoCompression())).ProduceSync(t.Context(), record(topic, large.Record())).FirstErr(); err != nil {
		return nil
	}
	return errors.New("the leader takes it")
}

// topicID is what tells a topic from others of its name.
func topicID(t *testing.T, broker *kafkatest.Broker, topic string) kadm.TopicID {
	t.Helper()
	topics, err := broker.Admin(t).ListTopics(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return topics[topic].ID
}

// TestRecreatedTopic: clients go on to send to the topic that is gone, for ever.
func TestRecreatedTopic(t *testing.T) {
	for name, settings := range map[string]time.Duration{"found by looking": 50 * time.Millisecond, "found by refusals": time.Hour} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, broker *kafkatest.Broker) {
				topic := broker.Topic(t, 1, nil)
				cfg := config(broker, topic)
				cfg.DeliveryTimeout = 2 * time.Second
				pace := quick()
				pace.settings = settings
				sink := openReady(t, cfg, pace)
				publish(t, sink, event(t, uuid.New(), 1, 10)).wantAll(relay.Delivered)

				was := topicID(t, broker, topic)
				if _, err := broker.Admin(t).DeleteTopic(t.Context(), topic); err != nil {
					t.Fatal(err)
				}
				waitFor(t, "the topic to be there again", func() error {
					answer, err := broker.Admin(t).CreateTopic(t.Context(), 1, -1, nil, topic)
					return errors.Join(err, answer.Err)
				})
				waitFor(t, "the broker to know that it is another", func() error {
					if topicID(t, broker, topic) == was {
						return errors.New("it does not") // and would take events for what it is about to delete
					}
					return nil
				})
				e := event(t, uuid.New(), 1, 10)
				waitFor(t, "an event to arrive", func() error {
					if err := sink.Ready(envelope.NonTenant()); err != nil {
						return err
					}
					return publish(t, sink, e).wait()[0]
				})
				if got := ids(t, broker, topic); len(got) != 1 || got[0] != e.ID() {
					t.Errorf("topic holds %q, want %s", got, e.ID())
				}
			})
		})
	}
}

// TestRefusalWithoutReasonIsNotRepeatedAtOnce: a broker that refuses what its settings allow is not asked again at once.
func TestRefusalWithoutReasonIsNotRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Fake(t)
	topic := broker.Topic(t, 1, nil)
	pace := quick()
	pace.settingsAgain = time.Hour
	sink := openReady(t, config(broker.Broker, topic), pace)
	broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: brokerError("MESSAGE_TOO_LARGE")})
	next := sink.topics.next()
	publish(t, sink, event(t, uuid.New(), 1, 10)).wantAll(relay.NotAttempted)
	<-next // it has been looked at again
	if err := sink.Ready(envelope.NonTenant()); err == nil || !strings.Contains(err.Error(), "refused events that its settings allow") {
		t.Errorf("Ready = %v, want the refusal", err)
	}
}

func TestAwaitReady(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Fake(t)
	topic := kafkatest.Name("later")
	sink := open(t, config(broker.Broker, topic), quick())
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := sink.AwaitReady(ctx, envelope.NonTenant()); err == nil || !strings.Contains(err.Error(), topic) {
		t.Errorf("AwaitReady = %v, want the reason", err)
	}
	done := make(chan error, 1)
	go func() { done <- sink.AwaitReady(t.Context(), envelope.NonTenant()) }()
	broker.CreateTopic(t, topic, 1, nil)
	if err := <-done; err != nil {
		t.Errorf("AwaitReady = %v", err)
	}
}
