package relaytest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

// Outlet is a sink under test, and the way to look behind it.
type Outlet struct {
	relay.Sink
	// Scope is one that the sink is ready for.
	Scope envelope.Scope
	// Arrived gives the events that the sink delivered so far, those of one operation in
	// the order in which they were.
	Arrived func() []envelope.Event
	// Oversize is a size of data, in bytes, that the sink answers with a row fault; 0 if
	// it takes any.
	Oversize int
}

// sinkPatience bounds the wait for answers.
const sinkPatience = 30 * time.Second

// ExerciseSink holds implementations of [relay.Sink] against its comments. open gives
// each case a sink of its own that is ready for its scope and delivers.
func ExerciseSink(t *testing.T, open func(t *testing.T) Outlet) {
	t.Helper()
	cases := map[string]func(*sinkCase){
		"delivers in order, answers once": sinkDelivers,
		"concurrent sends":                sinkConcurrent,
		"row fault stops its operation":   sinkRowFault,
		"ended context fails nothing":     sinkEndedContext,
		"ready does not block":            sinkReady,
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(&sinkCase{T: t, outlet: open(t)})
		})
	}
}

type sinkCase struct {
	*testing.T
	outlet Outlet
}

// answersOf collects what a sink answers.
type answersOf struct {
	mu   sync.Mutex
	errs [][]error // per event, each answer
	left int
	all  chan struct{}
}

func (a *answersOf) answer(i int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.errs[i] = append(a.errs[i], err)
	if a.left--; a.left == 0 {
		close(a.all)
	}
}

// send publishes events without waiting for the answers.
func (c *sinkCase) send(ctx context.Context, events []envelope.Event) *answersOf {
	a := &answersOf{errs: make([][]error, len(events)), left: len(events), all: make(chan struct{})}
	c.outlet.Publish(ctx, events, a.answer)
	return a
}

// wait gives the one answer to each event.
func (c *sinkCase) wait(a *answersOf) []error {
	c.Helper()
	select {
	case <-a.all:
	case <-time.After(sinkPatience):
		c.Fatalf("not all of %d events were answered in %s", len(a.errs), sinkPatience)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	errs := make([]error, len(a.errs))
	for i, each := range a.errs {
		if len(each) != 1 {
			c.Fatalf("event %d was answered %d times, want once: %v", i, len(each), each)
		}
		errs[i] = each[0]
	}
	return errs
}

// events makes n events of an operation from a state version on, with data of at least
// a size.
func (c *sinkCase) events(operation uuid.UUID, from, n, size int) []envelope.Event {
	c.Helper()
	events := make([]envelope.Event, n)
	for i := range events {
		data := fmt.Appendf(nil, `{"operation_id": %q, "state_version": %d, "filler": %q}`, operation, from+i, strings.Repeat("x", size))
		event, err := envelope.New(namespace, c.outlet.Scope, operation, "aksara.operation.transition", time.Unix(1, 0), data)
		if err != nil {
			c.Fatal(err)
		}
		events[i] = event
	}
	return events
}

// arrived checks that exactly those events of one operation have arrived, in order and
// as they were sent.
func (c *sinkCase) arrived(want []envelope.Event) {
	c.Helper()
	var got []envelope.Event
	for _, e := range c.outlet.Arrived() {
		if e.OperationID == want[0].OperationID {
			got = append(got, e)
		}
	}
	if len(got) != len(want) {
		c.Fatalf("%d events of operation %s arrived, want %d", len(got), want[0].OperationID, len(want))
	}
	for i := range want {
		if got[i].ID() != want[i].ID() || !bytes.Equal(got[i].Data, want[i].Data) || got[i].Scope != want[i].Scope {
			c.Errorf("event %d is %s of %s with %d bytes of data, want %s of %s with %d", i,
				got[i].ID(), got[i].Scope, len(got[i].Data), want[i].ID(), want[i].Scope, len(want[i].Data))
		}
	}
}

func sinkDelivers(c *sinkCase) {
	a, b := c.events(uuid.New(), 1, 50, 100), c.events(uuid.New(), 1, 50, 100)
	sent := slices.Concat(a, b)
	for i, err := range c.wait(c.send(c.Context(), slices.Clone(sent))) {
		if err != nil {
			c.Errorf("event %d: %v", i, err)
		}
	}
	c.arrived(a)
	c.arrived(b)
}

func sinkConcurrent(c *sinkCase) {
	const senders = 8
	var sent [senders][]envelope.Event
	var answers [senders]*answersOf
	var all sync.WaitGroup
	for n := range senders {
		sent[n] = c.events(uuid.New(), 1, 20, 10)
		all.Go(func() { answers[n] = c.send(c.Context(), sent[n]) })
	}
	all.Wait()
	for n, events := range sent {
		for i, err := range c.wait(answers[n]) {
			if err != nil {
				c.Errorf("event %d of send %d: %v", i, n, err)
			}
		}
		c.arrived(events)
	}
}

func sinkRowFault(c *sinkCase) {
	if c.outlet.Oversize == 0 {
		return // nothing is too large for it
	}
	operation, other := uuid.New(), c.events(uuid.New(), 1, 3, 10)
	good := c.events(operation, 1, 2, 10)
	large := c.events(operation, 3, 1, c.outlet.Oversize)
	behind := c.events(operation, 4, 2, 10)
	classes := []relay.Class{
		relay.Delivered, relay.Delivered, relay.RowFault, relay.NotAttempted, relay.NotAttempted,
		relay.Delivered, relay.Delivered, relay.Delivered,
	}
	for i, err := range c.wait(c.send(c.Context(), slices.Concat(good, large, behind, other))) {
		if got := relay.ClassOf(err); got != classes[i] {
			c.Errorf("event %d was answered as %s (%v), want %s", i, got, err, classes[i])
		}
	}
	c.arrived(good)
	c.arrived(other)
}

// sinkEndedContext: whatever became of an event, its row must not be counted as failed
// only because nobody waits any more.
func sinkEndedContext(c *sinkCase) {
	for _, early := range []bool{true, false} {
		ctx, cancel := context.WithCancel(c.Context())
		if early {
			cancel()
		}
		events := c.events(uuid.New(), 1, 20, 10)
		a := c.send(ctx, events)
		cancel()
		// Another send shows that the sink works on, and gives the first one time.
		for i, err := range c.wait(c.send(c.Context(), c.events(uuid.New(), 1, 1, 10))) {
			if err != nil {
				c.Errorf("event %d of a later send: %v", i, err)
			}
		}
		a.mu.Lock()
		for i, answers := range a.errs {
			for _, err := range answers {
				if class := relay.ClassOf(err); class != relay.Delivered && class != relay.Unknown && class != relay.NotAttempted {
					c.Errorf("event %d was answered as %s (%v) because its context ended", i, class, err)
				}
			}
		}
		a.mu.Unlock()
	}
}

func sinkReady(c *sinkCase) {
	begun := time.Now()
	for range 1000 {
		if err := c.outlet.Ready(c.outlet.Scope); err != nil {
			c.Fatalf("ready: %v", err)
		}
	}
	if took := time.Since(begun); took > sinkPatience/10 {
		c.Errorf("1,000 answers of Ready took %s, want them from memory", took)
	}
}
