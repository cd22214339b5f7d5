package faults_test

import (
	"strconv"
	"testing"

	"outboxrelay/internal/relayproc"
)

// A live table goes from at least once to exactly once and back, with events in wait at each change: each is there once, since each
// relay was stopped as it should be.
func TestExactlyOnceThereAndBack(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	mode := s.exactly()
	stop := s.startLoad()
	for _, env := range []map[string]string{{}, mode, {}} {
		s.Fill(s.acme, 500, 3)
		s.run(env, map[string]string{"RELAY_BATCH_ROWS": "50"})
		s.ready()
		s.progress(100)
		if status := s.relay.Stop(); status != 0 {
			t.Errorf("relay ended with status %d", status)
		}
		if n := s.CountRows("claimed_by is not null"); n > 0 {
			t.Errorf("%d rows are claimed when no relay runs", n)
		}
	}
	stop()
	s.run(mode)
	s.Drained("true")
	s.eachOnce(s.CountRows("true"))
	s.clean()
}

// While events are written, each of two relays is replaced by one with other numbers of workers, and a third joins and is killed for
// good: the others settle what it left. Each event is there once.
func TestExactlyOnceRollingRestart(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	mode := s.exactly()
	start := func(instance, workers int) *relayproc.Process {
		return relayproc.Start(t, s.Env("acme", mode, shortLease, map[string]string{
			"RELAY_INSTANCE": strconv.Itoa(instance), "RELAY_WORKERS": strconv.Itoa(workers), "RELAY_BATCH_ROWS": "50",
		}))
	}
	stop := s.startLoad()
	relays := []*relayproc.Process{start(0, 4), start(1, 1)}
	s.progress(100)
	third := start(2, 4)
	s.relay = third
	s.ready()
	s.progress(100)
	third.Kill()
	for i, workers := range []int{2, 3} {
		if status := relays[i].Stop(); status != 0 {
			t.Errorf("relay %d ended with status %d", i, status)
		}
		s.progress(100)
		relays[i] = start(i, workers)
		s.relay = relays[i]
		s.ready()
		s.progress(100)
	}
	stop()
	s.Drained("true")
	s.eachOnce(s.CountRows("true"))
	if status := relays[0].Stop(); status != 0 {
		t.Errorf("relay 0 ended with status %d", status)
	}
	s.clean()
}
