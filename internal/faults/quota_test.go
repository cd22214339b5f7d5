package faults_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/relayproc"
)

// A broker's quota makes the backlog take longer than a lease, and three relays share it: none takes the others' slowness, or
// its own, for a failure.
func TestProducerQuota(t *testing.T) {
	t.Parallel()
	const rows, bytesPerSecond, lease = 4800, 100_000, 11 * time.Second
	s := newScene(t)
	client := kafkatest.Name("client")
	s.quota(client, bytesPerSecond)
	s.Fill(s.acme, rows/3, 3)
	env := s.Env("acme", map[string]string{
		"RELAY_CLAIM_LEASE": lease.String(), "RELAY_KAFKA_DELIVERY_TIMEOUT": "2s", "RELAY_KAFKA_CLIENT_ID": client,
		"RELAY_KAFKA_COMPRESSION": "none", "RELAY_BATCH_ROWS": "20",
	})
	began := time.Now()
	for range 3 {
		s.relay = relayproc.Start(t, env)
	}
	s.Drained("true")
	if took := time.Since(began); took < lease {
		t.Errorf("the backlog took %s, less than a lease, so nothing was tested", took)
	}
	if n := len(s.Records()); n > rows+rows/100 {
		t.Errorf("%d records came of %d rows, want 1 %% more at most", n, rows)
	}
	s.notParked()
	s.deliveredInOrder()
}

// quota limits what clients of that name may send to a broker, until the test ends.
func (s *scene) quota(client string, bytesPerSecond float64) {
	s.T.Helper()
	admin := s.Broker.Admin(s.T)
	set := func(op kadm.AlterClientQuotaOp) {
		answers, err := admin.AlterClientQuotas(context.Background(), []kadm.AlterClientQuotaEntry{{
			Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: &client}}, Ops: []kadm.AlterClientQuotaOp{op},
		}})
		for _, a := range answers {
			err = errors.Join(err, a.Err)
		}
		if err != nil {
			s.T.Errorf("set quota: %v", err)
		}
	}
	set(kadm.AlterClientQuotaOp{Key: "producer_byte_rate", Value: bytesPerSecond})
	s.T.Cleanup(func() { set(kadm.AlterClientQuotaOp{Key: "producer_byte_rate", Remove: true}) })
}
