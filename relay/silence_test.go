package relay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

// replaced is how a sink ends what was sent to a broker that does not answer.
func replaced(ctx context.Context, s *relaytest.Send) {
	pause(ctx, 65*time.Second)
	s.Rest(relay.Unknown.Wrap(errors.New("the client was replaced")))
}

// TestOneSilentPartition: a partition, or a broker, that takes events and does not answer delays those of others only by the
// first moments.
func TestOneSilentPartition(t *testing.T) {
	bubble(t, func(f *fixture) {
		scopes := f.scopes(4)
		silent := map[uuid.UUID]bool{}
		for range 500 {
			silent[f.operation(scopes[0], 1)] = true
		}
		f.sink.Handle = func(ctx context.Context, s *relaytest.Send) {
			for i := range s.Events {
				if !silent[s.Events[i].OperationID] {
					s.Answer(i, nil)
				}
			}
			<-ctx.Done()
		}
		f.makeFor(oneTopic{f.sink})
		stop := f.start(scopes...)
		var worst time.Duration
		for n := range 300 {
			id := f.operation(scopes[n%4], 1)
			begin := time.Now()
			f.await("it is delivered", func() bool { return len(f.versions(id)) == 1 })
			worst = max(worst, time.Since(begin))
			time.Sleep(time.Second)
		}
		if worst > 2*time.Second {
			t.Errorf("an event of another partition took %s", worst)
		}
		t.Logf("at most %s", worst)
		stop()
	})
}

// TestSilenceEnds: a tenant whose answers can't be written does not keep the topic of others silent.
func TestSilenceEnds(t *testing.T) {
	bubble(t, func(f *fixture) {
		bad, good := f.scope("bad"), f.scope("good")
		f.operation(bad, 1)
		f.store.SetFault(func(_ context.Context, call relaytest.Call, _ bool) error {
			if call.Scope == bad && len(call.Verdicts) > 0 {
				return errors.New("locked")
			}
			return nil
		})
		f.sink.Handle = func(_ context.Context, s *relaytest.Send) {
			if s.Events[0].Scope == bad {
				time.Sleep(5 * time.Second)
				s.Rest(relay.Environment.Wrap(errors.New("denied")))
				return
			}
			s.Rest(nil)
		}
		f.makeFor(oneTopic{f.sink})
		stop := f.start(bad, good)
		time.Sleep(2 * time.Second) // it is silent now
		f.operation(good, 1)
		begin := time.Now()
		f.await("the good scope is drained", f.drained(good))
		if took := time.Since(begin); took > relay.DefaultDeliveryTimeout+5*time.Second {
			t.Errorf("an event took %s", took)
		}
		f.store.SetFault(nil)
		f.await("the bad scope's answer is written", func() bool { return f.row(bad, 0).LastError != "" })
		stop()
	})
}

// TestManySilentTopics: very many topics that fall silent at the same instant delay others by a moment each, once.
func TestManySilentTopics(t *testing.T) {
	bubble(t, func(f *fixture) {
		const silent = 200
		scopes := f.scopes(silent + 1)
		good := scopes[silent]
		for _, scope := range scopes[:silent] {
			f.operation(scope, 3)
		}
		f.sink.Handle = func(ctx context.Context, s *relaytest.Send) {
			if s.Events[0].Scope != good {
				<-ctx.Done()
				return
			}
			s.Rest(nil)
		}
		stop := f.start(scopes...)
		var worst, later time.Duration
		for start := time.Now(); time.Since(start) < 90*time.Second; time.Sleep(time.Second) {
			f.operation(good, 1)
			begin := time.Now()
			f.await("the good scope is drained", f.drained(good))
			worst = max(worst, time.Since(begin))
			if begin.Sub(start) > 30*time.Second {
				later = max(later, time.Since(begin))
			}
		}
		if worst > 10*time.Second || later > time.Second {
			t.Errorf("an event took %s, and after half a minute %s, want 10 s and 1 s at most", worst, later)
		}
		t.Logf("an event took %s, after half a minute %s", worst, later)
		stop()
	})
}

// TestSilentPartitionAllAlong: every second event is for a partition that does not answer; of an even number of tenants, all
// events of every second one are.
func TestSilentPartitionAllAlong(t *testing.T) {
	for _, c := range []struct {
		tenants, events int
		every           time.Duration
		late            int // events of other partitions that may take more than 3 s, of a hundred
	}{{5, 360, 5 * time.Second, 5}, {40, 2000, 25 * time.Millisecond, 5}, {41, 2000, 25 * time.Millisecond, 5}} {
		t.Run(fmt.Sprintf("%d tenants, each %s", c.tenants, c.every), func(t *testing.T) {
			bubble(t, func(f *fixture) {
				scopes := f.scopes(c.tenants)
				var late atomic.Int64
				isSilent := func(id uuid.UUID) bool { return id[15]%2 == 0 }
				f.sink.Handle = func(ctx context.Context, s *relaytest.Send) {
					for i := range s.Events {
						if isSilent(s.Events[i].OperationID) {
							continue
						}
						if time.Since(s.Events[i].Time) > 3*time.Second {
							late.Add(1)
						}
						s.Answer(i, nil)
					}
					replaced(ctx, s)
				}
				f.makeFor(oneTopic{f.sink})
				stop := f.start(scopes...)
				for n := range c.events {
					id := uuid.New()
					id[15] = byte(n)
					f.store.Add(namespace, scopes[n%c.tenants], id, 1)
					time.Sleep(c.every)
				}
				if n := int(late.Load()); n*100 > c.late*c.events/2 {
					t.Errorf("%d of %d events of other partitions took more than 3 s", n, c.events/2)
				}
				t.Logf("%d late", late.Load())
				stop()
			})
		})
	}
}

// TestSilentTopicsWithBacklogs: topics that are silent take no more than a part of what may wait for answers, however much
// waits to be sent to them.
func TestSilentTopicsWithBacklogs(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.config.BatchBytes = 256 << 10
		f.make()
		scopes := f.scopes(41)
		good := scopes[40]
		for _, scope := range scopes[:40] {
			for range 80 {
				f.operation(scope, 1)
			}
		}
		more := []byte(`, "more": "` + string(bytes.Repeat([]byte("x"), 8<<10)) + `"}`)
		f.store.Edit(func(r *relaytest.Stored) { r.Payload = append(bytes.TrimSuffix(r.Payload, []byte("}")), more...) })
		f.sink.Handle = func(ctx context.Context, s *relaytest.Send) {
			if s.Events[0].Scope == good {
				s.Rest(nil)
				return
			}
			replaced(ctx, s)
		}
		stop := f.start(scopes...)
		var worst time.Duration
		for start := time.Now(); time.Since(start) < 3*time.Minute; time.Sleep(time.Second) {
			f.operation(good, 1)
			begin := time.Now()
			f.await("the good scope is drained", f.drained(good))
			worst = max(worst, time.Since(begin))
		}
		if worst > 5*time.Second {
			t.Errorf("an event of a topic that works took %s", worst)
		}
		t.Logf("at most %s", worst)
		stop()
	})
}

// TestStalledEnds: a relay whose topic was in trouble does not count as stalled for ever when another one has sent all.
func TestStalledEnds(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme := f.scope("acme")
		f.operation(acme, 1)
		f.sink.Handle = func(_ context.Context, s *relaytest.Send) { s.Rest(relay.Environment.Wrap(errors.New("denied"))) }
		stop := f.start(acme)
		f.await("it is stalled", func() bool { return f.relay.Stalled(acme) != nil })
		f.store.Edit(func(r *relaytest.Stored) { r.Exported, r.ClaimedBy, r.Expires = true, "", time.Time{} })
		time.Sleep(3 * time.Minute)
		if err := f.relay.Stalled(acme); err != nil {
			t.Errorf("three minutes later: %v", err)
		}
		stop()
	})
}

// TestBadRowsSayNothingOfTheSink: rows that can't become events, beside a topic that is denied, do not make it tried more.
func TestBadRowsSayNothingOfTheSink(t *testing.T) {
	bubble(t, func(f *fixture) {
		acme, bad := f.scope("acme"), f.scope("bad")
		for range 100 {
			f.operation(acme, 1)
		}
		var sends atomic.Int64
		f.sink.Handle = func(_ context.Context, s *relaytest.Send) {
			sends.Add(1)
			s.Rest(relay.Environment.Wrap(errors.New("denied")))
		}
		f.makeFor(oneTopic{f.sink})
		stop := f.start(acme, bad)
		time.Sleep(time.Minute)
		before := sends.Load()
		for range 60 {
			id := f.operation(bad, 1)
			f.store.Edit(func(r *relaytest.Stored) {
				if r.Operation == id {
					r.Payload = []byte(`"no object"`)
				}
			})
			time.Sleep(time.Second)
		}
		if n := sends.Load() - before; n > 20 {
			t.Errorf("%d sends in a minute with bad rows, %d in the one before", n, before)
		}
		stop()
	})
}

// TestUnwrittenAnswersHoldUpTheirTenantOnly: the database does not take what is to be written of some tenants' rows, which
// somebody else has locked. Those wait for it, others do not, however many such tenants there are, and whether or not topics are
// silent as well.
func TestUnwrittenAnswersHoldUpTheirTenantOnly(t *testing.T) {
	bubble(t, func(f *fixture) {
		scopes := f.scopes(13)
		locked, silent, good := scopes[:8], scopes[8:12], scopes[12]
		var unlocked atomic.Bool
		f.store.SetFault(func(ctx context.Context, call relaytest.Call, _ bool) error {
			if len(call.Verdicts) > 0 && slices.Contains(locked, call.Scope) && !unlocked.Load() {
				pause(ctx, 9*time.Second)
				return errors.New("canceling statement due to statement timeout")
			}
			return nil
		})
		f.sink.Handle = func(ctx context.Context, s *relaytest.Send) {
			if slices.Contains(silent, s.Events[0].Scope) && !unlocked.Load() {
				replaced(ctx, s)
				return
			}
			s.Rest(nil)
		}
		stop := f.start(scopes...)
		for _, scope := range scopes[:12] {
			f.operation(scope, 2)
		}
		var waits []time.Duration
		for range 120 {
			for _, scope := range locked {
				f.operation(scope, 1) // there is always more to claim
			}
			id := f.operation(good, 1)
			begin := time.Now()
			f.await("it is delivered", func() bool { return len(f.versions(id)) == 1 })
			waits = append(waits, time.Since(begin))
			time.Sleep(time.Second)
		}
		late := 0
		for _, wait := range waits {
			if wait > time.Second {
				late++
			}
		}
		if late > 5 || slices.Max(waits) > 20*time.Second {
			t.Errorf("%d of %d events of another tenant took more than a second, one %s", late, len(waits), slices.Max(waits))
		}
		t.Logf("%d of %d took more than a second, at most %s", late, len(waits), slices.Max(waits))
		unlocked.Store(true)
		f.await("the rest is delivered and written", f.drained(scopes...))
		stop()
	})
}
