package faults_test

import (
	"strings"
	"testing"
	"time"

	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/relayproc"
)

// quickDelivery has sends given up soon, so that an outage need not last long to be felt.
var quickDelivery = map[string]string{
	"RELAY_CLAIM_LEASE": "11s", "RELAY_KAFKA_DELIVERY_TIMEOUT": "2s", "RELAY_RETRY_DELAY": "500ms", "RELAY_RETRY_MAX_DELAY": "2s",
	"RELAY_KAFKA_MIN_INSYNC_REPLICAS": "2",
}

// outage is what a relay is told where brokers die: where that lasts for long, the defaults hold.
func outage() map[string]string {
	if *lengthy {
		return map[string]string{"RELAY_KAFKA_MIN_INSYNC_REPLICAS": "2"}
	}
	return quickDelivery
}

// Brokers of a cluster of three die. The cases share one cluster, and leave it whole.
func TestBrokersDie(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Cluster(t)
	for _, c := range []struct {
		name string
		run  func(*scene, *kafkatest.Own)
	}{
		{"leader killed", leaderKilled},
		{"too few replicas", tooFewReplicas},
		{"all down while the relay restarts", allDown},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := relayproc.New(t, relayproc.Standalone, cluster.Broker)
			c.run(&scene{Fixture: f, acme: relayproc.Tenant(t, "acme")}, cluster)
		})
	}
}

// The broker that leads a partition is killed under load: others take over.
func leaderKilled(s *scene, cluster *kafkatest.Own) {
	s.Fill(s.acme, 500, 3)
	stopLoad := s.startLoad()
	s.run(outage(), map[string]string{"RELAY_BATCH_ROWS": "50"})
	s.progress(100)
	leader := leaderOf(s.T, cluster, s.Topic)
	kill(s.T, cluster, leader)
	s.alive()
	awaitLeaders(s, cluster, leader)
	s.recoveredWithin(brokerRecovery)
	stopLoad()
	s.deliveredInOrder()
	start(s.T, cluster, leader)
}

// Two of three brokers are down, so the third may not acknowledge: nothing counts as exported until there are two again.
func tooFewReplicas(s *scene, cluster *kafkatest.Own) {
	s.Fill(s.acme, 100, 3)
	s.run(outage())
	s.Drained("true")
	kill(s.T, cluster, 2, 3)
	s.Fill(s.acme, 100, 3)
	awaitInSync(s, cluster, 1, 1)
	s.Fill(s.acme, 100, 3)
	s.unready(broker)
	s.lasts(2 * time.Minute)
	if n := s.exported(); n != 300 {
		s.T.Errorf("%d rows are exported although too few replicas are there, want the 300 from before", n)
	}
	s.notParked()
	start(s.T, cluster, 2, 3)
	awaitInSync(s, cluster, 2, 3) // then the outage is over
	s.recoveredWithin(brokerRecovery)
	s.deliveredInOrder()
}

// All brokers are down for long, and the relay is stopped, killed and started again and again meanwhile, as an orchestrator
// does: rows wait with few attempts, none is given up, and the log stays readable.
func allDown(s *scene, cluster *kafkatest.Own) {
	other := cluster.Topic(s.T, 3, nil)
	s.Fill(s.acme, 100, 3)
	s.run(outage())
	s.Drained("true")
	kill(s.T, cluster, 1, 2, 3)
	s.Fill(s.acme, size(1000, 34_000), 3)
	for round := range 4 {
		s.unready(broker)
		s.fewLines()
		s.lasts(150 * time.Second)
		if round%2 == 0 {
			s.relay.Kill()
		} else if status := s.relay.Stop(); status != 0 {
			s.T.Errorf("relay ended with status %d", status)
		}
		s.run(outage())
	}
	s.unready(broker)
	s.notParked()
	start(s.T, cluster, 1, 2, 3)
	awaitInSync(s, cluster, 2, 3)
	awaitAcks(s, cluster, other, 3) // then the outage is over
	s.recoveredWithin(allBrokersRecovery)
	s.deliveredInOrder()
	// One for the delivery, one for a claim before the outage was known, one for a claim that was made as the brokers came back.
	s.T.Logf("at most %d attempts", s.Count("select max(export_attempts) from aksara_operation_outbox"))
	if n := s.CountRows("export_attempts > 3"); n > 0 {
		s.T.Errorf("%d rows were claimed more than 3 times", n)
	}
}

// fewLines fails if the relay, which started less than a minute ago, has logged more than 500 lines in ten minutes would be.
func (s *scene) fewLines() {
	s.T.Helper()
	if n := strings.Count(s.relay.Log.String(), "\n"); n > 50 {
		s.T.Errorf("relay logged %d lines in less than a minute, want 50 at most:\n%s", n, s.relay.Log)
	}
}

// notParked fails if an event was given up.
func (s *scene) notParked() {
	s.T.Helper()
	if n := s.CountRows("next_attempt_at = 'infinity'"); n > 0 {
		s.T.Errorf("%d rows are parked", n)
	}
}
