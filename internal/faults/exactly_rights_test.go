package faults_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/relayproc"
)

// onTopic are rights on one topic, and onIDs those on the transactional ids with a prefix.
func onTopic(topic string, operations ...kadm.ACLOperation) *kadm.ACLBuilder {
	return kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral).Operations(operations...)
}

func onIDs(prefix string, operations ...kadm.ACLOperation) *kadm.ACLBuilder {
	return kadm.NewACLs().TransactionalIDs(prefix).ResourcePatternType(kadm.ACLPatternPrefixed).Operations(operations...)
}

// With exactly the rights that docs/exactly-once.md lists exactly-once works, on a broker that allows nothing else. Each of them is
// taken away and given back under load: the relay and its check say which one is missing, nothing more is claimed, and the relay
// goes on by itself. Each event is there once.
func TestExactlyOnceRightsAreTakenAway(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Secure(t)
	user := broker.User(t)
	s := &scene{Fixture: relayproc.New(t, relayproc.Standalone, broker.Broker), acme: relayproc.Tenant(t, "acme")}
	env, _ := secured(t, broker.CAFile(t), user)
	mode := s.exactly()
	ledger, prefix := mode["RELAY_LEDGER_TOPIC"], mode["RELAY_TRANSACTIONAL_ID"]+"-"
	broker.Allow(t, user, transitions(s.Topic))
	broker.Allow(t, user, onTopic(ledger, kadm.OpRead, kadm.OpWrite, kadm.OpDescribe, kadm.OpDescribeConfigs))
	// The own ids are not enough: a relay also ends what others have left.
	own := kadm.NewACLs().TransactionalIDs(prefix+"0-0").ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpWrite, kadm.OpDescribe)
	grantIDs := fmt.Sprintf("grant WRITE, DESCRIBE on transactional ids with the prefix %q", prefix)
	broker.Allow(t, user, own)
	if out, _, status := relayproc.Command(t, s.Env("acme", env, mode), "check"); status != 3 || !strings.Contains(out, grantIDs) {
		t.Errorf("with rights on the own id alone check has status %d:\n%s", status, out)
	}
	broker.Revoke(t, user, own)
	broker.Allow(t, user, onIDs(prefix, kadm.OpWrite, kadm.OpDescribe))
	if out, _, status := relayproc.Command(t, s.Env("acme", env, mode), "check"); status != 0 || strings.Contains(out, "fail ") {
		t.Errorf("with the documented rights check has status %d:\n%s", status, out)
	}
	stop := s.startLoad()
	s.run(env, mode, quickRetry)
	s.progress(100)

	ledgerRights := fmt.Sprintf("rights on ledger topic %q are missing: ", ledger)
	for _, missing := range []struct {
		taken *kadm.ACLBuilder
		named string
		check string // what only check says, if it is something else
	}{
		{onTopic(s.Topic, kadm.OpWrite), "grant WRITE on it", ""},
		{onTopic(s.Topic, kadm.OpDescribeConfigs), "grant DESCRIBE_CONFIGS on it", ""},
		{onTopic(ledger, kadm.OpRead), ledgerRights + "READ: grant READ on it", "READ -> grant READ on it"},
		{onTopic(ledger, kadm.OpWrite), ledgerRights + "WRITE: grant WRITE on it", "WRITE -> grant WRITE on it"},
		{onTopic(ledger, kadm.OpDescribeConfigs), ledgerRights + "DESCRIBE_CONFIGS", ""},
		{onTopic(ledger, kadm.OpDescribe, kadm.OpRead, kadm.OpWrite), ledgerRights + "DESCRIBE, WRITE, READ", ""},
		{onIDs(prefix, kadm.OpWrite), grantIDs, ""},
		{onIDs(prefix, kadm.OpWrite, kadm.OpDescribe), grantIDs, ""},
	} {
		broker.Revoke(t, user, missing.taken)
		s.unready(missing.named)
		s.nothingIsClaimed()
		if missing.check == "" {
			missing.check = missing.named
		}
		out, _, status := relayproc.Command(t, s.Env("acme", env, mode), "check")
		if status != 3 || !strings.Contains(out, missing.check) {
			t.Errorf("check has status %d and does not say %s:\n%s", status, missing.check, out)
		}
		broker.Allow(t, user, missing.taken)
		s.ready()
		s.recovered()
	}
	stop()
	s.Drained("true")
	s.eachOnce(s.CountRows("true"))
	s.clean()
}
