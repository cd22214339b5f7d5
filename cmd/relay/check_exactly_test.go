package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"outboxrelay/internal/kafkatest"
)

// newExactStage is a stage for exactly-once mode, with three events and a ledger.
func newExactStage(t *testing.T) *stage {
	t.Helper()
	s := newStage(t)
	s.fill(t, namespace)
	s.env["RELAY_DELIVERY"], s.env["RELAY_INSTANCE"], s.env["RELAY_TRANSACTIONAL_ID"] = "exactly-once", "0", "tx"
	s.env["RELAY_LEDGER_TOPIC"] = s.broker.Topic(t, 8, map[string]string{"cleanup.policy": "compact"})
	return s
}

// claimed has all events claimed by a token, with the lease over.
func (s *stage) claimed(t *testing.T, token string) {
	t.Helper()
	s.change(t, "update aksara_operation_outbox set claimed_by = '"+token+"', claim_expires_at = now() - interval '1 second'")
}

// entry writes one of another database into the ledger, as the last one of slot tx-0-2.
func (s *stage) entry(t *testing.T) {
	t.Helper()
	client := s.broker.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	err := client.ProduceSync(t.Context(), &kgo.Record{
		Topic: s.env["RELAY_LEDGER_TOPIC"], Partition: 2, Key: []byte("tx-0-2"), Value: []byte(`{"token": "tx-0-2#init", "source": "elsewhere"}`),
	}).FirstErr()
	if err != nil {
		t.Fatal(err)
	}
}

// formerTransactions has the brokers speak as before Kafka 4.0.
func (s *stage) formerTransactions(t *testing.T) {
	t.Helper()
	feature := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
	feature.Feature, feature.MaxVersionLevel, feature.UpgradeType = "transaction.version", 1, 2 // a safe downgrade
	req := kmsg.NewPtrUpdateFeaturesRequest()
	req.FeatureUpdates = append(req.FeatureUpdates, feature)
	if resp, err := req.RequestWith(t.Context(), s.broker.Client(t)); err != nil || resp.ErrorCode != 0 {
		t.Fatal(resp, err)
	}
}

func TestCheckOfExactlyOnce(t *testing.T) {
	t.Parallel()
	s := newExactStage(t)
	status, out, errs := runCommand(t, s.env, "check")
	if status != statusDone || errs != "" {
		t.Fatalf("status %d, %s%s", status, out, errs)
	}
	for _, line := range []string{
		`ok    transactions: the brokers have transaction.version=2`,
		`ok    transactional ids: those with the prefix "tx-" may be used`,
		fmt.Sprintf(`ok    ledger size: ledger topic %q has 8 partitions, and this relay needs 4`, s.env["RELAY_LEDGER_TOPIC"]),
		`ok    claims: 0 claims, none of which needs a person to decide`,
		`ok    ledger entries: relays can go on from what the ledger says of all slots`,
	} {
		if !strings.Contains(out, line+"\n") {
			t.Errorf("there is no line %q in\n%s", line, out)
		}
	}
}

// Each fault has a line that says what to do, and nothing else is found wrong.
func TestCheckFindsFaultsOfExactlyOnce(t *testing.T) {
	t.Parallel()
	const live = "update aksara_operation_outbox set claim_expires_at = now() + interval '1 hour'"
	for name, c := range map[string]struct {
		wrong func(t *testing.T, s *stage)
		want  []string
	}{
		"too few partitions": {
			func(t *testing.T, s *stage) { s.env["RELAY_INSTANCE"] = "1" },
			[]string{"has 8 partitions, and this relay needs 12 -> give it 12 partitions or more"},
		},
		"entries that are deleted": {
			func(t *testing.T, s *stage) { s.env["RELAY_LEDGER_TOPIC"] = s.broker.Topic(t, 8, nil) },
			[]string{"cleanup.policy=delete -> set its cleanup.policy to compact alone"},
		},
		"no ledger": {
			func(t *testing.T, s *stage) { s.env["RELAY_LEDGER_TOPIC"] = kafkatest.Name("none") },
			[]string{"does not exist -> create it, or correct RELAY_LEDGER_TOPIC"},
		},
		"former transactions": {
			func(t *testing.T, s *stage) { s.formerTransactions(t) },
			[]string{"transactions: the brokers do not have transaction.version=2"},
		},
		"another kind of exporter": {
			func(t *testing.T, s *stage) { s.claimed(t, "worker/0123456789abcdef"); s.change(t, live) },
			[]string{`foreign claims: 3 rows are held by 1 claim, such as "worker/0123456789abcdef", of another kind of exporter`},
		},
		"another prefix": {
			func(t *testing.T, s *stage) { s.claimed(t, "other-0-0#0123456789abcdef") },
			[]string{`foreign claims: 3 rows are held by 1 claim, such as "other-0-0#0123456789abcdef"`},
		},
		"a lost ledger": {
			func(t *testing.T, s *stage) { s.claimed(t, "tx-0-0#0123456789abcdef") },
			[]string{`lost ledger: 3 rows are held by 1 claim, such as "tx-0-0#0123456789abcdef"`},
		},
		"a ledger of other rows": {
			func(t *testing.T, s *stage) { s.entry(t) },
			[]string{"ledger entries: slot tx-0-2: the ledger's last entry is of other rows, in elsewhere"},
		},
		"a ledger of other rows, and claims": {
			func(t *testing.T, s *stage) { s.entry(t); s.claimed(t, "tx-0-2#0123456789abcdef") },
			[]string{
				`ledger of other rows: 3 rows are held by 1 claim, such as "tx-0-2#0123456789abcdef"`,
				"ledger entries: slot tx-0-2: the ledger's last entry is of other rows",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newExactStage(t)
			c.wrong(t, s)
			status, out, errs := runCommand(t, s.env, "check")
			if status != statusFault || errs != "" {
				t.Errorf("status %d, %s", status, errs)
			}
			if n := strings.Count(out, "fail  "); n != len(c.want) {
				t.Errorf("%d faults, want %d", n, len(c.want))
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("there is no %q", want)
				}
			}
			for line := range strings.Lines(out) {
				if strings.HasPrefix(line, "fail  ") && !strings.Contains(line, " -> ") {
					t.Errorf("line %q does not say what to do", line)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}
