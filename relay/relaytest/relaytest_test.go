package relaytest_test

import (
	"context"
	"errors"
	"testing"

	"outboxrelay/envelope"
	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	relaytest.ExerciseStore(t, func(*testing.T) relaytest.Outbox { return &relaytest.Store{} })
}

func TestSink(t *testing.T) {
	t.Parallel()
	const oversize = 1000
	relaytest.ExerciseSink(t, func(*testing.T) relaytest.Outlet {
		sink := &relaytest.Sink{Handle: func(_ context.Context, send *relaytest.Send) {
			for i, e := range send.Events {
				if len(e.Data) >= oversize {
					send.Answer(i, relay.RowFault.Wrap(errors.New("too large")))
				}
			}
			send.Rest(nil)
		}}
		return relaytest.Outlet{Sink: sink, Scope: envelope.NonTenant(), Arrived: sink.Delivered, Oversize: oversize}
	})
}
