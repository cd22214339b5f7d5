package kafkasink

import (
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"outboxrelay/relay"
)

// fittingMessage is a max.message.bytes with which every usual event fits: Aksara's
// payloads take 64 KiB at most as the table keeps them, and headers come on top.
const fittingMessage = 80 << 10

// judge holds a topic against what the relay needs of it: one rule for sending and for
// the check command.
func (t topicSettings) judge(minInsync int) []relay.Finding {
	name := t.String()
	switch {
	case errors.Is(t.missing, kerr.UnknownTopicOrPartition):
		return []relay.Finding{fault("topic", name+" does not exist", "create it, or correct "+t.variable())}
	case errors.Is(t.missing, kerr.TopicAuthorizationFailed):
		return []relay.Finding{t.judgeHidden()}
	case t.missing != nil:
		return []relay.Finding{fault("topic", name+": "+t.missing.Error(), "see the broker's log")}
	}
	findings := []relay.Finding{
		{Check: "topic", Seen: name + " has " + relay.Count(t.partitions, "partition", "partitions")},
		t.judgeRights(),
	}
	if t.configs != nil && !t.settingsHidden() {
		return append(findings, fault("topic settings", "the settings of "+name+" can't be read: "+t.configs.Error(),
			"see the broker's log"))
	}
	if t.configs != nil {
		return findings
	}
	findings = append(findings, t.judgeReplicas(minInsync))
	if t.inSync < t.minInsync {
		findings = append(findings, t.shrunken())
	}
	if t.role == forLedger {
		findings = append(findings, t.judgeCleanup())
	}
	return append(findings, t.judgeSize())
}

// judgeCleanup is about what becomes of the ledger's old entries: the last one of each slot must
// stay for ever.
func (t topicSettings) judgeCleanup() relay.Finding {
	f := relay.Finding{Check: "ledger", Seen: fmt.Sprintf("%s has cleanup.policy=%s", t, t.cleanup)}
	if t.cleanup != "compact" {
		f.Level = relay.Fail
		f.Do = "set its cleanup.policy to compact alone: else its last entries are deleted, and nobody knows what was committed"
	}
	return f
}

// judgeLedgerSize is about room for all slots of a relay.
func (t topicSettings) judgeLedgerSize(needed int) relay.Finding {
	f := relay.Finding{Check: "ledger size", Seen: fmt.Sprintf("%s has %s, and this relay needs %d", t, relay.Count(t.partitions, "partition", "partitions"), needed)}
	if t.partitions < needed {
		f.Level = relay.Fail
		f.Do = fmt.Sprintf("give it %d partitions or more, which may be done at any time: it needs RELAY_INSTANCE x %d + RELAY_WORKERS",
			needed, relay.SlotsPerInstance)
	}
	return f
}

func fault(check, seen, do string) relay.Finding {
	return relay.Finding{Check: check, Level: relay.Fail, Seen: seen, Do: do}
}

// judgeHidden is about a topic that the cluster does not talk about. WRITE and READ bring
// DESCRIBE with them, so none of them is there.
func (t topicSettings) judgeHidden() relay.Finding {
	lacking := []string{"DESCRIBE", "WRITE"}
	if t.role == forLedger {
		lacking = append(lacking, "READ")
	}
	if t.settingsHidden() {
		lacking = append(lacking, "DESCRIBE_CONFIGS")
	}
	rights := strings.Join(lacking, ", ")
	return fault("topic rights", fmt.Sprintf("rights on %s are missing: %s", t, rights),
		"grant "+rights+" on it; it may also not exist, which nobody is told without DESCRIBE")
}

func (t topicSettings) judgeRights() relay.Finding {
	var lacking []string
	if !t.mayWrite {
		lacking = append(lacking, "WRITE")
	}
	if t.role == forLedger && !t.mayRead {
		lacking = append(lacking, "READ")
	}
	if t.settingsHidden() {
		lacking = append(lacking, "DESCRIBE_CONFIGS")
	}
	if lacking == nil {
		return relay.Finding{Check: "topic rights", Seen: fmt.Sprintf("%s may be written and described", t)}
	}
	rights := strings.Join(lacking, ", ")
	return fault("topic rights", fmt.Sprintf("rights on %s are missing: %s", t, rights), "grant "+rights+" on it")
}

// settingsHidden is true if the topic's settings are kept from the relay.
func (t topicSettings) settingsHidden() bool {
	return errors.Is(t.configs, kerr.TopicAuthorizationFailed)
}

func (t topicSettings) judgeReplicas(minInsync int) relay.Finding {
	const variable = "RELAY_KAFKA_MIN_INSYNC_REPLICAS"
	f := relay.Finding{
		Check: "topic replicas",
		Seen:  fmt.Sprintf("%s has %s and min.insync.replicas=%d", t, relay.Count(t.replicas, "replica", "replicas"), t.minInsync),
	}
	switch {
	case t.replicas < t.minInsync:
		f.Level = relay.Fail
		f.Do = fmt.Sprintf("give it %d replicas or lower min.insync.replicas: as it is, brokers refuse every event", t.minInsync)
	case min(t.replicas, t.minInsync) < minInsync:
		f.Level = relay.Fail
		f.Seen += fmt.Sprintf(", but %s is %d", variable, minInsync)
		f.Do = fmt.Sprintf("raise min.insync.replicas to %d%s, or set %s=%d if that is enough",
			minInsync, t.needReplicas(minInsync), variable, min(t.replicas, t.minInsync))
	}
	return f
}

// needReplicas says how many replicas a topic needs first, if it has too few: raising
// min.insync.replicas above them would make brokers refuse every event.
func (t topicSettings) needReplicas(minInsync int) string {
	if t.replicas >= minInsync {
		return ""
	}
	return fmt.Sprintf(" and give the topic %d replicas or more first", minInsync)
}

// shrunken is about partitions that take no events now. It does not keep the others'
// from being sent.
func (t topicSettings) shrunken() relay.Finding {
	return relay.Finding{
		Check: "topic in-sync replicas", Level: relay.Warn,
		Seen: fmt.Sprintf("a partition of %s has %s in sync now, and min.insync.replicas=%d: it takes no events", t, relay.Count(t.inSync, "replica", "replicas"), t.minInsync),
		Do:   "bring the missing brokers back; its events wait until then",
	}
}

func (t topicSettings) judgeSize() relay.Finding {
	f := relay.Finding{
		Check: "topic sizes", Seen: fmt.Sprintf("%s takes messages of up to %d bytes", t, t.maxMessage),
	}
	if t.maxMessage < fittingMessage {
		what := [...]string{
			forEvents:  "an event that is larger is parked, and the rest of its operation waits",
			forLetters: "a dead letter that is larger goes without the event's payload",
			forLedger:  "the entry of a large claim does not fit",
		}[t.role]
		f.Level = relay.Warn
		f.Do = fmt.Sprintf("raise its max.message.bytes to %d or more: %s", fittingMessage, what)
	}
	return f
}

// String names the topic and what it is for.
func (t topicSettings) String() string {
	return fmt.Sprintf("%s %q", [...]string{forEvents: "topic", forLetters: "dead-letter topic", forLedger: "ledger topic"}[t.role], t.name)
}

// variable is the setting that names the topic.
func (t topicSettings) variable() string {
	return [...]string{forEvents: "RELAY_KAFKA_TOPIC", forLetters: "RELAY_DEAD_LETTER_TOPIC", forLedger: "RELAY_LEDGER_TOPIC"}[t.role]
}

// blocking is the first finding that keeps events from being sent, as an error.
func blocking(findings []relay.Finding) error {
	for _, f := range findings {
		if f.Level == relay.Fail {
			return fmt.Errorf("%s: %s", f.Seen, f.Do)
		}
	}
	return nil
}
