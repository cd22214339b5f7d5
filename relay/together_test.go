package relay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

// counted is an outbox that counts transactions.
type counted struct {
	*relaytest.Store
	claims, settlements atomic.Int64
}

func (c *counted) Claim(ctx context.Context, req relay.Request) (relay.Claim, error) {
	c.claims.Add(1)
	return c.Store.Claim(ctx, req)
}

func (c *counted) ClaimAll(ctx context.Context, reqs []relay.Request) ([]relay.Claim, error) {
	c.claims.Add(1)
	return c.Store.ClaimAll(ctx, reqs)
}

func (c *counted) Settle(ctx context.Context, claim relay.Claim, verdicts []relay.Verdict) ([]relay.Result, error) {
	c.settlements.Add(1)
	return c.Store.Settle(ctx, claim, verdicts)
}

func (c *counted) SettleAll(ctx context.Context, all []relay.Settlement) ([][]relay.Result, error) {
	c.settlements.Add(1)
	return c.Store.SettleAll(ctx, all)
}

// leaving is an outbox that reads the payloads of some scope's rows only if these are claimed by themselves.
type leaving struct {
	*relaytest.Store
	scope envelope.Scope
}

func (l *leaving) ClaimAll(ctx context.Context, reqs []relay.Request) ([]relay.Claim, error) {
	claims, err := l.Store.ClaimAll(ctx, reqs)
	for i := range claims {
		if claims[i].Scope != l.scope {
			continue
		}
		for n := range claims[i].Rows {
			row := &claims[i].Rows[n]
			row.Payload, row.Err, claims[i].More = nil, relay.NotAttempted.Wrap(errors.New("large")), true
		}
	}
	return claims, err
}

// flowing starts a relay for many scopes that have one topic, to which events get through.
func (f *fixture) flowing(n int) (scopes []envelope.Scope, store *counted, stop func()) {
	f.Helper()
	store = &counted{Store: f.store}
	scopes, stop = f.flowingFrom(store, n)
	return scopes, store, stop
}

func (f *fixture) flowingFrom(store relay.Store, n int) (scopes []envelope.Scope, stop func()) {
	f.Helper()
	scopes = f.scopes(n)
	r, err := relay.New(f.config, store, oneTopic{f.sink}, f.tally)
	if err != nil {
		f.Fatal(err)
	}
	f.relay = r
	f.operation(scopes[0], 1)
	stop = f.start(scopes...)
	f.await("an event to get through", f.drained(scopes[0]))
	return scopes, stop
}

// Very many scopes have an event each: a transaction claims of several, and one marks what several claims have delivered.
func TestLittleGoesTogether(t *testing.T) {
	bubble(t, func(f *fixture) {
		scopes, store, stop := f.flowing(1000)
		f.store.SetFault(func(ctx context.Context, call relaytest.Call, done bool) error {
			if !done && len(call.Verdicts) > 0 {
				pause(ctx, time.Millisecond)
			}
			return nil
		})
		store.claims.Store(0)
		store.settlements.Store(0)
		for _, scope := range scopes {
			f.operation(scope, 2)
		}
		f.await("all are delivered", f.drained(scopes...))
		if claims, settlements := store.claims.Load(), store.settlements.Load(); claims > 300 || settlements > 300 {
			t.Errorf("%d claims and %d settlements of 1,000 scopes' events, want several scopes' together", claims, settlements)
		}
		stop()
		for _, scope := range scopes {
			f.deliveredOnce(f.row(scope, len(f.store.Rows(scope))-1).Operation, 2)
		}
	})
}

// What is to be written of one scope's rows is refused or fails, at once or slowly. The others that would be written together with
// it are marked, and soon.
func TestRefusedMarkHarmsNoOther(t *testing.T) {
	for name, c := range map[string]struct {
		class relay.Class
		slow  time.Duration
	}{
		"refused": {relay.RowFault, 0}, "a lock did not come": {relay.RowFault, 2 * time.Second}, "failed": {relay.Failed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				scopes, _, stop := f.flowing(200)
				bad := scopes[7]
				f.store.SetFault(func(ctx context.Context, call relaytest.Call, done bool) error {
					if done || len(call.Verdicts) == 0 {
						return nil
					}
					pause(ctx, time.Millisecond)
					if call.Scope == bad {
						pause(ctx, c.slow)
						return c.class.Wrap(errors.New("not this one"))
					}
					return nil
				})
				for _, scope := range scopes {
					f.operation(scope, 1)
				}
				begin := time.Now()
				f.await("the others are marked", f.drained(slices.DeleteFunc(slices.Clone(scopes), func(s envelope.Scope) bool { return s == bad })...))
				if took, most := time.Since(begin), 2*c.slow+2*time.Second; took > most {
					t.Errorf("the others were marked after %s, want %s at most", took, most)
				}
				f.store.SetFault(nil)
				f.await("the last one is marked", f.drained(bad))
				stop()
				f.tally.blames(bad)
			})
		})
	}
}

// A claim of several scopes fails for the sake of one. All others are delivered.
func TestClaimOfSeveralFails(t *testing.T) {
	for name, class := range map[string]relay.Class{"refused for one scope": relay.RowFault, "failed": relay.Failed} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				scopes, _, stop := f.flowing(50)
				bad, broken := scopes[3], atomic.Bool{}
				broken.Store(true)
				f.store.SetFault(func(_ context.Context, call relaytest.Call, done bool) error {
					if !done && call.IsClaim() && call.Scope == bad && broken.Load() {
						return class.Wrap(fmt.Errorf("no claim of %s", bad))
					}
					return nil
				})
				for _, scope := range scopes {
					f.operation(scope, 1)
				}
				f.await("the others are delivered", f.drained(slices.DeleteFunc(slices.Clone(scopes), func(s envelope.Scope) bool { return s == bad })...))
				broken.Store(false)
				f.await("the last one is delivered", f.drained(bad))
				stop()
			})
		})
	}
}

// Payloads that are large are left for a claim of their scope alone, which says nothing of the topic: the others go on meanwhile, and
// that claim follows at once.
func TestLargePayloadsAreClaimedAlone(t *testing.T) {
	bubble(t, func(f *fixture) {
		store := &leaving{Store: f.store, scope: f.scope("tenant-5")}
		scopes, stop := f.flowingFrom(store, 40)
		for range 5 {
			for _, scope := range scopes {
				f.operation(scope, 2)
			}
			begin := time.Now()
			f.await("all are delivered", f.drained(scopes...))
			if took := time.Since(begin); took > 500*time.Millisecond {
				t.Errorf("they took %s", took)
			}
		}
		stop()
		for _, row := range f.store.Rows(store.scope) {
			if row.Attempts != 1 {
				t.Errorf("%v, want that one attempt counts", row)
			}
		}
	})
}

// What is written of one tenant's rows takes long each time, and goes well. It is found out soon, and done apart: others' events
// don't wait for it.
func TestSlowMarksAreDoneApart(t *testing.T) {
	bubble(t, func(f *fixture) {
		scopes, _, stop := f.flowing(60)
		bad := scopes[7]
		others := slices.Delete(slices.Clone(scopes), 7, 8)
		f.store.SetFault(func(ctx context.Context, call relaytest.Call, done bool) error {
			if done || len(call.Verdicts) == 0 {
				return nil
			}
			pause(ctx, 2*time.Millisecond)
			if call.Scope == bad {
				pause(ctx, 1900*time.Millisecond)
			}
			return nil
		})
		var worst time.Duration
		for range 60 {
			for _, scope := range scopes {
				f.operation(scope, 1)
			}
			began := time.Now()
			f.await("others' events to be marked", f.drained(others...))
			worst = max(worst, time.Since(began))
			time.Sleep(time.Second)
		}
		if worst > 1500*time.Millisecond {
			t.Errorf("another tenant's event was marked after %s", worst)
		}
		stop()
	})
}
