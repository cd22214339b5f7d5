package faults_test

import (
	"strconv"
	"testing"

	"outboxrelay/internal/relayproc"
)

// A backlog whose text is several times larger than the memory that the relay has: it works through it within its limit. The
// runtime is told of the limit, as the relay does by itself in a container; a limit of the process it can't see.
func TestBacklogLargerThanMemory(t *testing.T) {
	t.Parallel()
	const rows, limit = 400, 128 << 10 // KiB
	s := newScene(t)
	s.Fill(s.acme, rows, 1)
	s.DB.Exec(t, `update aksara_operation_outbox set payload = payload || '{"more": [1e100000, 1e100000, 1e100000, 1e100000, 1e100000]}'`)
	s.relay = relayproc.StartLimited(t, limit, s.Env("acme", map[string]string{"GOMEMLIMIT": strconv.Itoa(limit*9/10) + "KiB"}))
	relayproc.Until(t, "all events to be exported", func() error {
		if s.relay.Ended() {
			t.Fatalf("the relay has ended, after %d of %d events", s.exported(), rows)
		}
		return unequal(rows, s.exported())
	})
	s.inTopic(rows)
	s.clean()
}
