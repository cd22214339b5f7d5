package relay_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

// TestUnwrittenMarksAreNoDeath: events were left behind by a relay that ended, another sends them, and the database does not
// take their marks for a long time. Nobody has ended since, so none is parked.
func TestUnwrittenMarksAreNoDeath(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		operation := f.operation(acme, 3)
		f.store.Seize(1, "worker/0123456789abcdef!!!!", -time.Second)
		var mended atomic.Bool
		f.store.SetFault(func(_ context.Context, call relaytest.Call, _ bool) error {
			if len(call.Verdicts) > 0 && call.Verdicts[0].Exported && !mended.Load() {
				return errors.New("no space for the audit log")
			}
			return nil
		})
		stop := f.start(acme)
		time.Sleep(20 * time.Minute)
		for _, r := range f.store.Rows(acme) {
			if r.Parked {
				t.Errorf("parked: %v", r)
			}
		}
		mended.Store(true)
		f.await("all are marked", f.drained(acme))
		stop()
		for _, r := range f.store.Rows(acme) {
			if r.LastError != "" {
				t.Errorf("an exported row has an error: %v", r)
			}
		}
		if got := f.versions(operation); !slices.Equal(slices.Compact(got), []int64{1, 2, 3}) {
			t.Errorf("versions %v were delivered", got)
		}
	})
}

// TestOnceWithoutAnswerIsNoDeath: each run of export_once ends by itself, so an event that a broker swallows is not taken for
// what ends them.
func TestOnceWithoutAnswerIsNoDeath(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		f.operation(acme, 1)
		f.sink.Handle = func(ctx context.Context, _ *relaytest.Send) { <-ctx.Done() }
		for range 12 {
			f.make() // each is a process of its own
			if outcome, err := f.relay.ExportOnce(f.Context(), acme); outcome != relay.SinkFailed {
				t.Fatalf("%s, %v", outcome, err)
			}
			if r := f.row(acme, 0); r.Parked {
				t.Fatalf("parked: %v", r)
			}
			time.Sleep(time.Minute)
		}
	})
}

// TestRefusedRowIsWrittenAlone: the database refuses to mark one row, as a trigger may. The others of its claim are marked, the
// tenant goes on, and only the row's own operation waits.
func TestRefusedRowIsWrittenAlone(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		for range 50 {
			f.operation(acme, 2)
		}
		const refused = 31
		var mended atomic.Bool
		f.store.SetFault(func(_ context.Context, call relaytest.Call, _ bool) error {
			if slices.ContainsFunc(call.Verdicts, func(v relay.Verdict) bool { return v.Row.ID == refused }) && !mended.Load() {
				return relay.RowFault.Wrap(errors.New("row 31 is under audit"))
			}
			return nil
		})
		stop := f.start(acme)
		others := func() bool {
			return !slices.ContainsFunc(f.store.Rows(acme), func(r relaytest.Stored) bool { return !r.Exported && r.ID != refused })
		}
		begin := time.Now()
		f.await("the others are marked", others)
		later := f.operation(acme, 2)
		f.await("a later operation is delivered", func() bool { return len(f.versions(later)) == 2 })
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("that took %s", took)
		}
		mended.Store(true)
		f.await("the rest is marked", f.drained(acme))
		stop()
	})
}

// TestSilentDeadLetterTopic: letters have no answer, for many tenants at once. The events of others are delivered meanwhile.
func TestSilentDeadLetterTopic(t *testing.T) {
	bubble(t, func(f *fixture) {
		scopes := f.scopes(40)
		good := scopes[39]
		f.config.DeadLetters = silentLetters{}
		f.sink.Handle = func(_ context.Context, s *relaytest.Send) {
			if s.Events[0].Scope == good {
				s.Rest(nil)
				return
			}
			s.Rest(relay.RowFault.Wrap(errors.New("too large")))
		}
		f.make()
		for _, scope := range scopes[:39] {
			for range 5 {
				f.operation(scope, 1)
			}
		}
		stop := f.start(scopes...)
		var worst time.Duration
		for range 120 {
			id := f.operation(good, 1)
			begin := time.Now()
			f.await("it is delivered", func() bool { return len(f.versions(id)) == 1 })
			worst = max(worst, time.Since(begin))
			time.Sleep(time.Second)
		}
		if worst > time.Second {
			t.Errorf("an event of another tenant took %s", worst)
		}
		stop()
	})
}

// silentLetters takes letters and does not answer.
type silentLetters struct{}

func (silentLetters) Bury(ctx context.Context, letters []envelope.DeadLetter) []error {
	<-ctx.Done()
	answers := make([]error, len(letters))
	for i := range answers {
		answers[i] = relay.Unknown.Wrap(errors.New("no answer"))
	}
	return answers
}

// TestSilentTopicWithAbandonedBacklog: very many events for a silent topic were left behind. Another topic that was refused for
// a while is tried again soon, and what waits for answers stays within its bound.
func TestSilentTopicWithAbandonedBacklog(t *testing.T) {
	bubble(t, func(f *fixture) {
		scopes := f.scopes(2)
		silent, refused := scopes[0], scopes[1]
		for range 5000 {
			f.operation(silent, 1)
		}
		for i := range 5000 {
			f.store.Seize(int64(i+1), "worker/0123456789abcdef", -time.Second)
		}
		id := f.operation(refused, 1)
		var allowed atomic.Bool
		var waiting, most atomic.Int64
		f.sink.Handle = func(ctx context.Context, s *relaytest.Send) {
			switch {
			case s.Events[0].Scope == silent:
				n := int64(len(s.Events))
				most.Store(max(most.Load(), waiting.Add(n)))
				replaced(ctx, s)
				waiting.Add(-n)
			case allowed.Load():
				s.Rest(nil)
			default:
				s.Rest(relay.Environment.Wrap(errors.New("denied")))
			}
		}
		f.config.BatchBytes = 4 << 10
		f.make()
		stop := f.start(scopes...)
		time.Sleep(10 * time.Minute)
		allowed.Store(true)
		begin := time.Now()
		f.await("it is delivered", func() bool { return len(f.versions(id)) == 1 })
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("the topic that works again was tried after %s", took)
		}
		if n := most.Load(); n > 1000 {
			t.Errorf("%d events of the silent topic waited for answers at once", n)
		}
		t.Logf("%s, at most %d", time.Since(begin), most.Load())
		stop()
	})
}

// TestNothingCanBeMarked: the database refuses every mark of a tenant with a backlog, as a trigger may, for ten minutes. Its events
// are not sent again and again meanwhile, and all are marked when that is over.
func TestNothingCanBeMarked(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		const rows, batch, minutes = 2000, 50, 10
		for range rows {
			f.operation(acme, 1)
		}
		var mended atomic.Bool
		f.store.SetFault(func(_ context.Context, call relaytest.Call, _ bool) error {
			if len(call.Verdicts) > 0 && !mended.Load() {
				return relay.RowFault.Wrap(errors.New("the audit failed"))
			}
			return nil
		})
		var sent atomic.Int64
		f.sink.Handle = func(_ context.Context, s *relaytest.Send) {
			sent.Add(int64(len(s.Events)))
			s.Rest(nil)
		}
		f.config.BatchRows = batch
		f.make()
		stop := f.start(acme)
		time.Sleep(minutes * time.Minute)
		// At most a claim of each worker in half a minute, which is the lease.
		if n, most := sent.Load(), int64(2*minutes*relay.DefaultWorkers*batch); n > most {
			t.Errorf("%d events were sent, want %d at most", n, most)
		}
		mended.Store(true)
		f.await("all are marked", f.drained(acme))
		stop()
	})
}
