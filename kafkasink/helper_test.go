package kafkasink

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/waittest"
	"outboxrelay/relay"
)

// patience bounds each wait. It is long because a busy machine answers slowly.
const patience = 30 * time.Second

// quick is a pace for tests.
func quick() pace {
	p := usual()
	p.settings, p.settingsAgain, p.stuckLook = 100*time.Millisecond, 50*time.Millisecond, 10*time.Millisecond
	return p
}

// config is that of a sink that sends everything to one topic.
func config(broker *kafkatest.Broker, topic string) Config {
	return Config{
		Connection:        Connection{Brokers: broker.Addrs, ClientID: "test"},
		Topic:             func(envelope.Scope) string { return topic },
		MinInsyncReplicas: 1, DeliveryTimeout: 10 * time.Second, Compression: "none", MaxInFlight: 100_000,
	}
}

// open makes a sink, which is closed when the test ends.
func open(t testing.TB, cfg Config, pace pace) *Sink {
	t.Helper()
	sink, err := newSink(cfg, pace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sink.Close)
	return sink
}

// openReady makes a sink and waits until it is ready.
func openReady(t testing.TB, cfg Config, pace pace) *Sink {
	t.Helper()
	sink := open(t, cfg, pace)
	waitFor(t, "the sink to be ready", func() error { return sink.Ready(envelope.NonTenant()) })
	return sink
}

// waitFor waits until done gives no error any more.
func waitFor(t testing.TB, what string, done func() error) {
	t.Helper()
	waittest.Until(t, patience, what, done)
}

// answers collects those to the events of one Publish.
type answers struct {
	t    testing.TB
	mu   sync.Mutex
	errs []error
	got  []bool
	open int
	all  chan struct{}
}

// publish sends events without waiting.
func publish(t testing.TB, sink *Sink, events ...envelope.Event) *answers {
	t.Helper()
	a := &answers{t: t, errs: make([]error, len(events)), got: make([]bool, len(events)), open: len(events), all: make(chan struct{})}
	sink.Publish(t.Context(), events, a.answer)
	return a
}

func (a *answers) answer(i int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.got[i] {
		a.t.Errorf("event %d was answered twice, first with %v, then with %v", i, a.errs[i], err)
		return
	}
	a.errs[i], a.got[i] = err, true
	if a.open--; a.open == 0 {
		close(a.all)
	}
}

// wait gives the answers when all are there.
func (a *answers) wait() []error {
	a.t.Helper()
	select {
	case <-a.all:
	case <-time.After(patience):
		a.mu.Lock()
		defer a.mu.Unlock()
		a.t.Fatalf("%d of %d events were not answered in %s", a.open, len(a.errs), patience)
	}
	return a.errs
}

// want checks the answers' classes.
func (a *answers) want(classes ...relay.Class) {
	a.t.Helper()
	wrong := 0
	for i, err := range a.wait() {
		got := relay.ClassOf(err)
		if got == classes[i] {
			continue
		}
		if wrong++; wrong <= 3 {
			a.t.Errorf("event %d was answered as %s (%v), want %s", i, got, err, classes[i])
		}
	}
	if wrong > 3 {
		a.t.Errorf("and %d more wrong answers", wrong-3)
	}
}

// wantAll checks that all answers are of one class.
func (a *answers) wantAll(class relay.Class) {
	a.t.Helper()
	classes := make([]relay.Class, len(a.errs))
	for i := range classes {
		classes[i] = class
	}
	a.want(classes...)
}

// unanswered is how many answers are missing now.
func (a *answers) unanswered() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open
}

// event makes one of an operation, with data of a size or somewhat more.
func event(t testing.TB, operation uuid.UUID, version, size int) envelope.Event {
	t.Helper()
	const form = `{"state_version": %d, "filler": "%s"}`
	filler := max(0, size-len(fmt.Sprintf(form, version, "")))
	data := fmt.Appendf(nil, form, version, bytes.Repeat([]byte("x"), filler))
	e, err := envelope.New("billing", envelope.NonTenant(), operation, "aksara.operation.transition", time.Unix(1, 0), data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// eventOfBatch makes an event that takes a batch of exactly that size on its own.
func eventOfBatch(t testing.TB, operation uuid.UUID, version, size int) envelope.Event {
	t.Helper()
	data := size
	for {
		e := event(t, operation, version, data)
		over := batchSize(e.Record()) - size
		if over == 0 {
			return e
		}
		data -= over
	}
}

// ids gives the ids of a topic's events, in order within each partition.
func ids(t testing.TB, broker *kafkatest.Broker, topic string) []string {
	t.Helper()
	var ids []string
	for _, r := range broker.All(t, topic) {
		ids = append(ids, string(headerOf(r, envelope.HeaderID)))
	}
	return ids
}

func headerOf(r *kgo.Record, name string) []byte {
	for _, h := range r.Headers {
		if h.Key == name {
			return h.Value
		}
	}
	return nil
}
