package kafkasink

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

const (
	// inspectTimeout bounds all of an inspection.
	inspectTimeout = 15 * time.Second
	// inspectLines is how many topics are told of one by one.
	inspectLines = 10
)

// Inspect tells whether events of the scopes could be sent, one finding for each thing
// looked at. It sends no event. Of more than ten topics only those that are not as they
// should be are told of, ten at most, and the others counted.
func Inspect(ctx context.Context, cfg Config, scopes []envelope.Scope) []relay.Finding {
	ctx, cancel := context.WithTimeoutCause(ctx, inspectTimeout, fmt.Errorf("no broker answered in %s", inspectTimeout))
	defer cancel()
	client, err := newInspector(cfg)
	if err != nil {
		return []relay.Finding{fault("brokers", "the Kafka settings can't be used: "+err.Error(), "correct the RELAY_KAFKA_ variables")}
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return []relay.Finding{cfg.unreachable("no broker of "+strings.Join(cfg.Brokers, ", ")+" can be used", because(ctx, err))}
	}
	findings, ok := cfg.inspectBrokers(ctx, client)
	if !ok {
		return findings
	}
	if cfg.Ledger != "" {
		findings = append(findings, inspectTransactions(ctx, client), cfg.inspectIDs(ctx, client))
	}
	return append(findings, cfg.inspectTopics(ctx, client, scopes)...)
}

// inspectTransactions tells whether the brokers' transactions are fit for exactly-once.
func inspectTransactions(ctx context.Context, client *kgo.Client) relay.Finding {
	if err := transactional(ctx, client); err != nil {
		return fault("transactions", err.Error(), "until then set RELAY_DELIVERY=at-least-once")
	}
	return relay.Finding{Check: "transactions", Seen: fmt.Sprintf("the brokers have %s=%d", transactionFeature, transactionVersion)}
}

func newInspector(cfg Config) (*kgo.Client, error) {
	opts, err := cfg.Options()
	if err != nil {
		return nil, err
	}
	return kgo.NewClient(append(opts, kgo.RequestRetries(1))...)
}

// inspectBrokers asks each broker at the address that the cluster tells clients to use,
// which may be another than the configured one. ok is false if none answers there.
func (c Config) inspectBrokers(ctx context.Context, client *kgo.Client) (findings []relay.Finding, ok bool) {
	cluster, err := kadm.NewClient(client).BrokerMetadata(ctx)
	if err != nil {
		return []relay.Finding{c.unreachable("the brokers can't be listed", because(ctx, err))}, false
	}
	errs := make([]error, len(cluster.Brokers))
	var asked sync.WaitGroup
	for i, b := range cluster.Brokers {
		asked.Go(func() {
			_, errs[i] = client.Broker(int(b.NodeID)).Request(ctx, kmsg.NewPtrApiVersionsRequest())
		})
	}
	asked.Wait()
	for i, b := range cluster.Brokers {
		if errs[i] == nil {
			ok = true
			continue
		}
		f := c.unreachable(fmt.Sprintf("broker %d can't be used at %s:%d, which the cluster tells clients to use", b.NodeID, b.Host, b.Port), because(ctx, errs[i]))
		f.Level = relay.Warn
		f.Do += "; or correct the broker's advertised.listeners"
		findings = append(findings, f)
	}
	if !ok {
		for i := range findings {
			findings[i].Level = relay.Fail
		}
		return findings, false
	}
	if findings == nil {
		findings = []relay.Finding{{Check: "brokers", Seen: relay.Count(len(cluster.Brokers), "broker answers", "brokers answer")}}
	}
	return findings, true
}

// inspectTopics judges the topics of the scopes, those of dead letters included.
func (c Config) inspectTopics(ctx context.Context, client *kgo.Client, scopes []envelope.Scope) []relay.Finding {
	var names []string
	roles := map[string]role{}
	if c.Ledger != "" {
		names = append(names, c.Ledger)
		roles[c.Ledger] = forLedger
	}
	for _, scope := range scopes {
		names = append(names, c.Topic(scope))
		if c.DeadLetterTopic != nil {
			names = append(names, c.DeadLetterTopic(scope))
			roles[c.DeadLetterTopic(scope)] = forLetters
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	topics, err := readTopics(ctx, client, names)
	if err != nil {
		return []relay.Finding{fault("topic", "the topics can't be looked at: "+because(ctx, err).Error(), "see the brokers' log")}
	}
	all := make([][]relay.Finding, len(names))
	for i, name := range names {
		t, ok := topics[name]
		if !ok {
			all[i] = []relay.Finding{fault("topic", fmt.Sprintf("the cluster says nothing of topic %q", name), "see the brokers' log")}
			continue
		}
		t.role = roles[name]
		all[i] = t.judge(c.MinInsyncReplicas)
		if t.role == forLedger && t.missing == nil {
			all[i] = append(all[i], t.judgeLedgerSize(c.LedgerPartitions))
		}
	}
	return summarise(all)
}

// summarise makes the findings of some topics short. The worst topics come first.
func summarise(topics [][]relay.Finding) (findings []relay.Finding) {
	if len(topics) <= inspectLines {
		return slices.Concat(topics...)
	}
	slices.SortStableFunc(topics, func(a, b []relay.Finding) int { return int(worst(b)) - int(worst(a)) })
	good, bad := 0, 0
	for _, t := range topics {
		if worst(t) == relay.OK {
			good++
			continue
		}
		if bad++; bad <= inspectLines {
			findings = append(findings, slices.DeleteFunc(t, func(f relay.Finding) bool { return f.Level == relay.OK })...)
		}
	}
	if bad > inspectLines {
		findings = append(findings, relay.Finding{
			Check: "topics", Level: worst(topics[inspectLines]), Do: "mend those above and check again",
			Seen: relay.Count(bad-inspectLines, "more topic is not as it should be", "more topics are not as they should be"),
		})
	}
	if good > 0 {
		findings = append(findings, relay.Finding{Check: "topics", Seen: relay.Count(good, "topic is as it should be", "topics are as they should be")})
	}
	return findings
}

func worst(findings []relay.Finding) (level relay.Level) {
	for _, f := range findings {
		level = max(level, f.Level)
	}
	return level
}
