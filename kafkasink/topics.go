package kafkasink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// topics knows the settings of the topics in use. A topic that is asked for first
// becomes known a moment later.
type topics struct {
	minInsync int
	pace      pace

	mu        sync.Mutex
	known     map[string]judged
	err       error     // why the last look failed
	seen      time.Time // when a broker last answered
	refreshed chan struct{}
	look      chan struct{} // asks for a look at once
}

// judged is a topic's settings and what they mean.
type judged struct {
	settings topicSettings
	err      error     // why nothing may be sent to it
	hold     time.Time // nothing may be sent before, whatever the settings are
	read     time.Time // not after the brokers were asked for the settings
}

var errNotRead = errors.New("its settings have not been read yet")

func newTopics(minInsync int, pace pace) *topics {
	return &topics{
		minInsync: minInsync, pace: pace, known: map[string]judged{},
		err: errors.New("no broker has been asked yet"), look: make(chan struct{}, 1), refreshed: make(chan struct{}),
	}
}

// ready is nil if events may be sent to a topic. It also makes the topic one in use.
func (t *topics) ready(name string) error { return t.use(name, forEvents) }

// readyForLetters is ready for a topic of dead letters.
func (t *topics) readyForLetters(name string) error { return t.use(name, forLetters) }

// readyForLedger is ready for the ledger's topic.
func (t *topics) readyForLedger(name string) error { return t.use(name, forLedger) }

// partitions is how many a topic has, as far as is known.
func (t *topics) partitions(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known[name].settings.partitions
}

func (t *topics) use(name string, role role) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	topic, ok := t.known[name]
	if !ok {
		topic.settings.role = role
		topic.err = fmt.Errorf("topic %q: %w", name, errNotRead)
		t.known[name] = topic
		t.lookNow()
	}
	if t.err != nil {
		return t.err
	}
	return topic.err
}

// terms are those on which a topic takes events.
func (t *topics) terms(name string) terms {
	t.mu.Lock()
	defer t.mu.Unlock()
	settings := t.known[name].settings
	return terms{settings.id, settings.maxMessage}
}

// fresh waits until the settings of a topic have been read anew, and gives the reason if
// they can't be.
func (t *topics) fresh(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, t.pace.ask)
	defer cancel()
	since := time.Now()
	for {
		t.mu.Lock()
		read, next := t.known[name].read, t.refreshed
		t.mu.Unlock()
		if read.After(since) {
			return nil
		}
		t.lookNow()
		select {
		case <-ctx.Done():
			return fmt.Errorf("topic %q: %w", name, errNotRead)
		case <-next:
		}
	}
}

// suspect takes a topic out of use until its settings have been read again, and for a
// moment longer: should they explain nothing, the same events would be refused again at
// once.
func (t *topics) suspect(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	topic := t.known[name]
	topic.err = fmt.Errorf("topic %q: brokers refused events that its settings allow; the settings are read again", name)
	topic.hold = time.Now().Add(t.pace.settingsAgain)
	t.known[name] = topic
	t.lookNow()
}

func (t *topics) lookNow() {
	select {
	case t.look <- struct{}{}:
	default:
	}
}

// watch looks at the topics in use until ctx ends. looked is called after each look that
// succeeded.
func (t *topics) watch(ctx context.Context, client func() *client, looked func()) {
	for ctx.Err() == nil {
		wait := t.pace.settings
		if !t.refresh(ctx, client(), looked) {
			wait = t.pace.settingsAgain
		}
		select {
		case <-ctx.Done():
		case <-t.look:
		case <-time.After(wait):
		}
	}
}

// refresh looks once, and reports whether all is well.
func (t *topics) refresh(parent context.Context, client *client, looked func()) (well bool) {
	ctx, cancel := context.WithTimeoutCause(parent, t.pace.ask, fmt.Errorf("no broker answered in %s", t.pace.ask))
	defer cancel()
	asked := time.Now()
	read, err := readTopics(ctx, client.Client, t.names())
	if parent.Err() != nil || errors.Is(err, kgo.ErrClientClosed) {
		return false // it was cut off: the sink ends, or another client has taken this one's place
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), cmp.Or(client.whyOffline(), err))
	}
	if well = t.store(read, asked, err); err == nil {
		looked()
	}
	return well
}

func (t *topics) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.known))
}

func (t *topics) store(read map[string]topicSettings, asked time.Time, err error) (well bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.refreshed)
	t.refreshed = make(chan struct{})
	if t.err = err; err != nil {
		return false
	}
	t.seen = time.Now()
	well = true
	for name, settings := range read {
		before := t.known[name]
		settings.role = before.settings.role
		now := judged{settings: settings, err: blocking(settings.judge(t.minInsync)), hold: before.hold, read: asked}
		switch {
		case now.err != nil:
			// Its terms, which may be missing now, are those of its last good settings.
			now.settings.id, now.settings.maxMessage = before.settings.id, before.settings.maxMessage
		case time.Now().Before(now.hold):
			now.err = before.err
		}
		well = well && now.err == nil
		t.known[name] = now
	}
	return well
}

// next is closed after the next look.
func (t *topics) next() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refreshed
}

// health is when a broker last answered and why the last look failed.
func (t *topics) health() (time.Time, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen, t.err
}
