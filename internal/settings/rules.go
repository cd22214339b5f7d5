package settings

import (
	"strings"
	"time"

	"outboxrelay/envelope"
)

const (
	// leaseMargin and graceMargin are what the relay needs beside the delivery
	// timeout: to settle a claim well before its lease ends, and to end cleanly.
	leaseMargin = 3 * time.Second
	graceMargin = 5 * time.Second
)

// checkRules holds the rules between variables.
func (l *loader) checkRules(s *Settings) {
	l.checkTimes(s)
	l.checkTLS(s.Kafka.TLS)
	l.checkSASL(s.Kafka.SASL)
	l.checkExactlyOnce(s)
	if l.sound("RELAY_TENANTS", "RELAY_NON_TENANT") && len(s.Scopes) == 0 && l.needs("RELAY_TENANTS") {
		l.broken([]string{"RELAY_TENANTS", "RELAY_NON_TENANT"}, "nothing to export: give at least one tenant, or true for the non-tenant scope")
	}
	if l.sound("RELAY_ROW_FAULTS", "RELAY_DEAD_LETTER_TOPIC") && s.RowFaults == DeadLetter && s.DeadLetterTopic == "" {
		l.broken([]string{"RELAY_ROW_FAULTS", "RELAY_DEAD_LETTER_TOPIC"}, "dead-letter needs a topic")
	}
	if l.sound("RELAY_TENANTS", "RELAY_NON_TENANT", "RELAY_KAFKA_TOPIC", "RELAY_ROW_FAULTS", "RELAY_DEAD_LETTER_TOPIC", "RELAY_LEDGER_TOPIC", "RELAY_DELIVERY") {
		l.rules = append(l.rules, topicFaults(s, s.Scopes)...)
	}
}

func (l *loader) checkTimes(s *Settings) {
	timeout, lease := s.Kafka.DeliveryTimeout, s.Lease
	const timeoutName, leaseName, graceName = "RELAY_KAFKA_DELIVERY_TIMEOUT", "RELAY_CLAIM_LEASE", "RELAY_SHUTDOWN_GRACE"
	if l.sound(timeoutName, leaseName) && timeout+leaseMargin >= lease/2 {
		l.broken([]string{timeoutName, leaseName}, "%s + %s must be less than half of %s: give a lease of more than %s, or a shorter delivery timeout",
			formatDuration(timeout), formatDuration(leaseMargin), formatDuration(lease), formatDuration(2*(timeout+leaseMargin)))
	}
	if l.sound(timeoutName, graceName) && timeout+graceMargin > s.ShutdownGrace {
		l.broken([]string{timeoutName, graceName}, "%s + %s must be at most %s: give a grace of at least %s, or a shorter delivery timeout",
			formatDuration(timeout), formatDuration(graceMargin), formatDuration(s.ShutdownGrace), formatDuration(timeout+graceMargin))
	}
	if l.sound("RELAY_RETRY_DELAY", "RELAY_RETRY_MAX_DELAY") && s.RetryDelay > s.RetryMaxDelay {
		l.broken([]string{"RELAY_RETRY_DELAY", "RELAY_RETRY_MAX_DELAY"}, "the first wait, %s, is longer than the longest, %s",
			formatDuration(s.RetryDelay), formatDuration(s.RetryMaxDelay))
	}
}

func (l *loader) checkTLS(t TLS) {
	const tls, cert, key = "RELAY_KAFKA_TLS", "RELAY_KAFKA_TLS_CERT_FILE", "RELAY_KAFKA_TLS_KEY_FILE"
	for _, name := range []string{"RELAY_KAFKA_TLS_CA_FILE", cert, key} {
		if l.given[name] != "" && !t.Enabled && l.sound(tls) {
			l.broken([]string{name, tls}, "the file is of no use without TLS: give true for %s", tls)
			return
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		l.broken([]string{cert, key}, "a certificate and its key go together: give both or none")
	}
}

// checkSASL wants what the mechanism needs and nothing else: what isn't used would
// make somebody believe that it is.
func (l *loader) checkSASL(s SASL) {
	const mechanism = "RELAY_KAFKA_SASL_MECHANISM"
	if !l.sound(mechanism) {
		return
	}
	uses := func(name string, isSet, wanted bool) {
		switch {
		case !l.sound(name) || isSet == wanted:
		case wanted:
			l.broken([]string{name, mechanism}, "is required for %s", s.Mechanism)
		case s.Mechanism == "":
			l.broken([]string{name, mechanism}, "is of no use without a mechanism")
		default:
			l.broken([]string{name, mechanism}, "is of no use for %s", s.Mechanism)
		}
	}
	bearer := s.Mechanism == "OAUTHBEARER"
	login := s.Mechanism != "" && !bearer
	uses("RELAY_KAFKA_SASL_USERNAME", s.Username != "", login)
	uses("RELAY_KAFKA_SASL_PASSWORD", s.Password.IsSet(), login)
	uses("RELAY_KAFKA_SASL_TOKEN_FILE", s.TokenFile != "", bearer)
}

func (l *loader) checkExactlyOnce(s *Settings) {
	if s.Delivery != ExactlyOnce {
		return
	}
	if s.TransactionalID == "" && l.sound("RELAY_TRANSACTIONAL_ID") && l.needs("RELAY_TRANSACTIONAL_ID") {
		l.broken([]string{"RELAY_TRANSACTIONAL_ID", "RELAY_DELIVERY"}, "is required for exactly-once")
	}
	if s.Instance < 0 && l.sound("RELAY_INSTANCE") && l.needs("RELAY_INSTANCE") {
		l.broken([]string{"RELAY_INSTANCE", "RELAY_DELIVERY"}, "is required for exactly-once, since the host name %.40q doesn't end in - and a number up to %d",
			l.hostname, maxInstance)
	}
}

// topicFaults holds the rules between scopes and topics. Records of two kinds, or
// dead letters and events of two tenants, must never meet in one topic.
func topicFaults(s *Settings, scopes []envelope.Scope) Faults {
	const topic, deadLetter, ledger = "RELAY_KAFKA_TOPIC", "RELAY_DEAD_LETTER_TOPIC", "RELAY_LEDGER_TOPIC"
	var faults Faults
	fault := func(problem string, names ...string) {
		faults = append(faults, Fault{Names: names, Problem: problem})
	}
	resolve := func(name, template string) map[string]bool {
		if s.NonTenant && strings.Contains(template, tenantMark) {
			fault("the non-tenant scope has no tenant to put for {tenant}", name, "RELAY_NON_TENANT")
			return nil
		}
		topics, err := topicsFor(template, scopes)
		if err != nil {
			fault(err.Error(), name, "RELAY_TENANTS")
		}
		return topics
	}

	topics := resolve(topic, s.Kafka.Topic)
	if s.Delivery == ExactlyOnce && topics[s.LedgerTopic] {
		fault("the ledger needs a topic of its own", topic, ledger)
	}
	if s.RowFaults != DeadLetter || s.DeadLetterTopic == "" {
		return faults
	}
	if strings.Contains(s.Kafka.Topic, tenantMark) && !strings.Contains(s.DeadLetterTopic, tenantMark) {
		fault("must hold {tenant}, as the other does", deadLetter, topic)
		return faults
	}
	letters := resolve(deadLetter, s.DeadLetterTopic)
	if s.Delivery == ExactlyOnce && letters[s.LedgerTopic] {
		fault("the ledger needs a topic of its own", deadLetter, ledger)
	}
	for letter := range letters {
		if letter != "" && topics[letter] {
			fault("dead letters need a topic of their own", deadLetter, topic)
			break
		}
	}
	return faults
}
