package faults_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"outboxrelay/internal/childproc"
	"outboxrelay/internal/kafkaserver"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/relayproc"
)

// late is by how many milliseconds answers of the broker are late.
const late = 2000

// A broker's answers come late or never, while signals come or rows go. The cases share one broker behind a proxy, and
// leave it as it was.
func TestSlowBroker(t *testing.T) {
	t.Parallel()
	ports, err := childproc.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	own := kafkatest.Server(t, kafkaserver.Options{Advertised: map[int]int{1: ports[0]}})
	link := startProxy(t, childproc.Loopback(ports[0]), own.Server.Addrs()[0])
	for _, c := range []struct {
		name string
		run  func(*scene, *proxy)
	}{
		{"stopped while answers are late", stoppedWhileAnswersAreLate},
		{"stopped without a broker", stoppedWithoutBroker},
		{"stopped by two signals", stoppedByTwoSignals},
		{"rows deleted under a claim", rowsDeleted},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.run(&scene{Fixture: relayproc.New(t, relayproc.Standalone, own.Broker), acme: relayproc.Tenant(t, "acme")}, link)
		})
	}
}

// env has the relay begin with the proxy; the broker names no other address.
func (p *proxy) env() map[string]string {
	return map[string]string{"RELAY_KAFKA_BROKERS": p.link.Listen}
}

// An orchestrator asks the relay to end while each answer takes 2 s: it waits for those that are under way, and the next one
// sends nothing twice.
func stoppedWhileAnswersAreLate(s *scene, link *proxy) {
	stopLoad := s.startLoad()
	s.run(link.env(), map[string]string{"RELAY_BATCH_ROWS": "20"})
	s.progress(15)
	heal := link.delay(late)
	s.progress(100)
	if status := s.relay.Stop(); status != 0 {
		s.T.Errorf("relay ended with status %d", status)
	}
	s.nothingClaimed()
	heal()
	stopLoad()
	s.run(link.env())
	s.deliveredOnce()
}

// The broker goes before the relay has sent anything, and the relay is asked to end while it has rows claimed: it ends in
// time and well, and the rows are free. (What may have reached the broker would stay claimed until its lease ends.)
func stoppedWithoutBroker(s *scene, link *proxy) {
	env := []map[string]string{link.env(), quickDelivery, {"RELAY_KAFKA_MIN_INSYNC_REPLICAS": "1", "RELAY_SHUTDOWN_GRACE": "10s"}}
	s.run(env...)
	s.ready()
	link.link.Stop()
	s.Fill(s.acme, 100, 3)
	s.claimed(1)
	if err := s.relay.Terminate(); err != nil {
		s.T.Fatal(err)
	}
	if status := s.relay.Exited(10 * time.Second); status != 0 {
		s.T.Errorf("relay ended with status %d", status)
	}
	s.nothingClaimed()
	if err := link.link.Start(); err != nil {
		s.T.Fatal(err)
	}
	s.run(env...)
	s.deliveredOnce()
}

// Somebody has no patience: the second signal ends the relay at once, though events have no answer yet.
func stoppedByTwoSignals(s *scene, link *proxy) {
	s.Fill(s.acme, 10, 3)
	s.run(link.env(), shortLease)
	s.Drained("true")
	heal := link.silence()
	s.Fill(s.acme, 100, 3)
	s.claimed(300)
	relayproc.Within(s.T, 2*time.Second, "the relay to end", func() error {
		if s.relay.Terminate() == nil { // the first ones may count as one
			return errors.New("it runs")
		}
		return nil
	})
	if status := s.relay.Exited(time.Second); status != 1 {
		s.T.Errorf("relay ended with status %d, want 1", status)
	}
	heal()
	s.run(link.env(), shortLease)
	s.deliveredInOrder()
}

// Rows are deleted while their events are under way, as by a clean-up that looks at their age only: the others of the claim
// are marked, and the relay goes on.
func rowsDeleted(s *scene, link *proxy) {
	s.Fill(s.acme, 10, 3)
	s.run(link.env())
	s.Drained("true")
	heal := link.delay(late)
	s.Fill(s.acme, 100, 3)
	s.claimed(300)
	if s.DB.Exec(s.T, "delete from aksara_operation_outbox where exported_at is null and id % 2 = 0").RowsAffected() == 0 {
		s.T.Fatal("all rows were exported before some were deleted")
	}
	heal()
	s.recovered()
	s.Drained("true")
	relayproc.ExactlyOnce(s.T, s.Events(), 331)
	s.quiet(s.relay)
	s.clean()
}

// claimed waits until so many rows are under way.
func (s *scene) claimed(rows int) {
	s.T.Helper()
	relayproc.Until(s.T, "rows to be claimed", func() error {
		if n := s.CountRows("exported_at is null and claimed_by is not null"); n < rows {
			return fmt.Errorf("%d so far", n)
		}
		return nil
	})
}

func (s *scene) nothingClaimed() {
	s.T.Helper()
	if n := s.CountRows("claimed_by is not null"); n > 0 {
		s.T.Errorf("%d rows are left claimed", n)
	}
}
