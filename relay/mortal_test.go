package relay_test

import (
	"context"
	"sync/atomic"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

// mortal is one relay's way to the outbox and the sink, until it dies. After that nothing
// that the relay does has an effect any more, as if it had been killed.
type mortal struct {
	relay.Store
	relay.Sink
	deadly func(events []envelope.Event) bool // sending them ends the process; nil: nothing does
	died   func()
	dead   atomic.Bool
}

func (m *mortal) Claim(ctx context.Context, req relay.Request) (relay.Claim, error) {
	if m.dead.Load() {
		return relay.Claim{}, errKilled
	}
	return m.Store.Claim(ctx, req)
}

func (m *mortal) Settle(ctx context.Context, c relay.Claim, verdicts []relay.Verdict) ([]relay.Result, error) {
	if m.dead.Load() {
		return nil, errKilled
	}
	return m.Store.Settle(ctx, c, verdicts)
}

func (m *mortal) Renew(ctx context.Context, c relay.Claim, ids []int64, lease time.Duration) ([]int64, error) {
	if m.dead.Load() {
		return nil, errKilled
	}
	return m.Store.Renew(ctx, c, ids, lease)
}

func (m *mortal) Publish(ctx context.Context, events []envelope.Event, answer func(int, error)) {
	if m.deadly != nil && m.deadly(events) {
		m.dead.Store(true)
		m.died()
	}
	if !m.dead.Load() {
		m.Sink.Publish(ctx, events, answer)
	}
}
