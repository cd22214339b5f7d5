package settings

import (
	"strings"
	"testing"
)

func TestRulesBetweenVariables(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		set  []string
		want []string // parts of the faults, in order
	}{
		{"lease too short", []string{"RELAY_KAFKA_DELIVERY_TIMEOUT", "12s"}, []string{"RELAY_KAFKA_DELIVERY_TIMEOUT, RELAY_CLAIM_LEASE: 12s + 3s must be less than half of 30s: give a lease of more than 30s"}},
		{"grace too short", []string{"RELAY_SHUTDOWN_GRACE", "14s"}, []string{"RELAY_KAFKA_DELIVERY_TIMEOUT, RELAY_SHUTDOWN_GRACE: 10s + 5s must be at most 14s"}},
		{"retry delays", []string{"RELAY_RETRY_DELAY", "6m"}, []string{"RELAY_RETRY_DELAY, RELAY_RETRY_MAX_DELAY: the first wait, 6m, is longer than the longest, 5m"}},
		{"a faulty part", []string{"RELAY_CLAIM_LEASE", "0s"}, []string{"RELAY_CLAIM_LEASE: "}},

		{"no scope", []string{"RELAY_TENANTS", ""}, []string{"RELAY_TENANTS, RELAY_NON_TENANT: nothing to export"}},
		{"empty array", []string{"RELAY_TENANTS", "[]"}, []string{"RELAY_TENANTS, RELAY_NON_TENANT: nothing to export"}},
		{"non-tenant alone", []string{"RELAY_TENANTS", "[]", "RELAY_NON_TENANT", "true"}, nil},
		{"illegal topics", []string{"RELAY_KAFKA_TOPIC", "x.{tenant}", "RELAY_TENANTS", "a,b c,d/e"}, []string{`RELAY_KAFKA_TOPIC, RELAY_TENANTS: topic "x.b c" holds other characters than A-Z, a-z, 0-9, '.', '_' and '-'; topic "x.d/e" holds`}},
		{"tenant makes the topic too long", []string{"RELAY_KAFKA_TOPIC", strings.Repeat("x", 240) + "{tenant}", "RELAY_TENANTS", "0123456789"}, []string{"RELAY_KAFKA_TOPIC, RELAY_TENANTS: topic"}},
		{"{tenant} and non-tenant", []string{"RELAY_KAFKA_TOPIC", "{tenant}", "RELAY_NON_TENANT", "true"}, []string{"RELAY_KAFKA_TOPIC, RELAY_NON_TENANT: the non-tenant scope has no tenant"}},

		{"dead-letter without a topic", []string{"RELAY_ROW_FAULTS", "dead-letter"}, []string{"RELAY_ROW_FAULTS, RELAY_DEAD_LETTER_TOPIC: dead-letter needs a topic"}},
		{"dead-letter", []string{"RELAY_ROW_FAULTS", "dead-letter", "RELAY_DEAD_LETTER_TOPIC", "dead"}, nil},
		{"dead-letter of tenants", []string{"RELAY_ROW_FAULTS", "dead-letter", "RELAY_DEAD_LETTER_TOPIC", "{tenant}.dead"}, nil},
		{"dead-letter lacks {tenant}", []string{"RELAY_ROW_FAULTS", "dead-letter", "RELAY_DEAD_LETTER_TOPIC", "dead", "RELAY_KAFKA_TOPIC", "{tenant}"}, []string{"RELAY_DEAD_LETTER_TOPIC, RELAY_KAFKA_TOPIC: must hold {tenant}"}},
		{"dead-letter {tenant} and non-tenant", []string{"RELAY_ROW_FAULTS", "dead-letter", "RELAY_DEAD_LETTER_TOPIC", "{tenant}", "RELAY_NON_TENANT", "true"}, []string{"RELAY_DEAD_LETTER_TOPIC, RELAY_NON_TENANT: the non-tenant"}},
		{"dead-letter is the topic", []string{"RELAY_ROW_FAULTS", "dead-letter", "RELAY_DEAD_LETTER_TOPIC", "aksara.operation.transitions"}, []string{"RELAY_DEAD_LETTER_TOPIC, RELAY_KAFKA_TOPIC: dead letters need"}},
		{"dead-letter meets a tenant's topic", []string{"RELAY_ROW_FAULTS", "dead-letter", "RELAY_KAFKA_TOPIC", "x{tenant}", "RELAY_DEAD_LETTER_TOPIC", "{tenant}x", "RELAY_TENANTS", "xx"}, []string{"RELAY_DEAD_LETTER_TOPIC, RELAY_KAFKA_TOPIC: dead letters need"}},
		{"dead-letter topic unused", []string{"RELAY_DEAD_LETTER_TOPIC", "{tenant}", "RELAY_NON_TENANT", "true"}, nil},

		{"exactly-once", []string{"RELAY_DELIVERY", "exactly-once", "RELAY_TRANSACTIONAL_ID", "tx"}, nil},
		{"exactly-once with dead letters", []string{"RELAY_DELIVERY", "exactly-once", "RELAY_TRANSACTIONAL_ID", "tx", "RELAY_ROW_FAULTS", "dead-letter", "RELAY_DEAD_LETTER_TOPIC", "dead"}, nil},
		{"exactly-once without an id", []string{"RELAY_DELIVERY", "exactly-once"}, []string{"RELAY_TRANSACTIONAL_ID, RELAY_DELIVERY: is required for exactly-once"}},
		{"ledger is the topic", []string{"RELAY_DELIVERY", "exactly-once", "RELAY_TRANSACTIONAL_ID", "tx", "RELAY_KAFKA_TOPIC", "relay.ledger"}, []string{"RELAY_KAFKA_TOPIC, RELAY_LEDGER_TOPIC: the ledger needs"}},
		{"ledger is the dead-letter topic", []string{"RELAY_DELIVERY", "exactly-once", "RELAY_TRANSACTIONAL_ID", "tx", "RELAY_ROW_FAULTS", "dead-letter", "RELAY_DEAD_LETTER_TOPIC", "relay.ledger"}, []string{"RELAY_DEAD_LETTER_TOPIC, RELAY_LEDGER_TOPIC: the ledger needs"}},

		{"CA without TLS", []string{"RELAY_KAFKA_TLS_CA_FILE", "ca"}, []string{"RELAY_KAFKA_TLS_CA_FILE, RELAY_KAFKA_TLS: the file is of no use"}},
		{"certificate without key", []string{"RELAY_KAFKA_TLS", "true", "RELAY_KAFKA_TLS_CERT_FILE", "c"}, []string{"RELAY_KAFKA_TLS_CERT_FILE, RELAY_KAFKA_TLS_KEY_FILE: a certificate and its key"}},
		{"key without certificate", []string{"RELAY_KAFKA_TLS", "true", "RELAY_KAFKA_TLS_KEY_FILE", "c"}, []string{"RELAY_KAFKA_TLS_CERT_FILE, RELAY_KAFKA_TLS_KEY_FILE: a certificate and its key"}},
		{"TLS of the system", []string{"RELAY_KAFKA_TLS", "true"}, nil},

		{"user without mechanism", []string{"RELAY_KAFKA_SASL_USERNAME", "u"}, []string{"RELAY_KAFKA_SASL_USERNAME, RELAY_KAFKA_SASL_MECHANISM: is of no use without a mechanism"}},
		{"PLAIN alone", []string{"RELAY_KAFKA_SASL_MECHANISM", "PLAIN"}, []string{"RELAY_KAFKA_SASL_USERNAME, RELAY_KAFKA_SASL_MECHANISM: is required for PLAIN", "RELAY_KAFKA_SASL_PASSWORD, RELAY_KAFKA_SASL_MECHANISM: is required for PLAIN"}},
		{"SCRAM with a token", []string{"RELAY_KAFKA_SASL_MECHANISM", "SCRAM-SHA-512", "RELAY_KAFKA_SASL_USERNAME", "u", "RELAY_KAFKA_SASL_PASSWORD", "p", "RELAY_KAFKA_SASL_TOKEN_FILE", "f"}, []string{"RELAY_KAFKA_SASL_TOKEN_FILE, RELAY_KAFKA_SASL_MECHANISM: is of no use for SCRAM-SHA-512"}},
		{"OAUTHBEARER", []string{"RELAY_KAFKA_SASL_MECHANISM", "OAUTHBEARER", "RELAY_KAFKA_SASL_TOKEN_FILE", "f"}, nil},
		{"OAUTHBEARER alone", []string{"RELAY_KAFKA_SASL_MECHANISM", "OAUTHBEARER"}, []string{"RELAY_KAFKA_SASL_TOKEN_FILE, RELAY_KAFKA_SASL_MECHANISM: is required for OAUTHBEARER"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.want == nil {
				mustLoad(t, with(c.set...), nil)
				return
			}
			faults := loadFaults(t, with(c.set...), nil)
			if len(faults) != len(c.want) {
				t.Fatalf("faults\n%v\nwant %q", faults, c.want)
			}
			for i, part := range c.want {
				if !strings.Contains(faults[i].Error(), part) {
					t.Errorf("fault %q, want %q", faults[i], part)
				}
			}
		})
	}
}

func TestExactlyOnceNeedsAnInstance(t *testing.T) {
	t.Parallel()
	env := with("RELAY_DELIVERY", "exactly-once", "RELAY_TRANSACTIONAL_ID", "tx")
	_, err := Load(environOf(env), files{}.read, "relay-x")
	if err == nil || !strings.Contains(err.Error(), `RELAY_INSTANCE, RELAY_DELIVERY: is required for exactly-once, since the host name "relay-x"`) {
		t.Errorf("Load: %v", err)
	}
}
