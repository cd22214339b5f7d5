package kafkasink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

const (
	// linger lets the records of a claim gather in batches before the first leaves.
	linger = time.Millisecond
	// slow is what takes longer than events do that get through.
	slow = 2 * time.Second
)

// Config is how events are sent.
type Config struct {
	Connection
	// Topic gives the topic of a scope's events.
	Topic func(envelope.Scope) string
	// DeadLetterTopic gives the topic of a scope's dead letters; nil if there are none.
	DeadLetterTopic func(envelope.Scope) string
	// Ledger is the topic of the ledger in exactly-once mode.
	Ledger string
	// LedgerPartitions is how many of the ledger's partitions this relay needs to exist.
	LedgerPartitions int
	// TransactionalID is the prefix of transactional ids in exactly-once mode.
	TransactionalID string
	// MinInsyncReplicas is the least that a topic must promise.
	MinInsyncReplicas int
	// DeliveryTimeout is how long an event that could not be sent yet is kept; one that
	// was sent has no limit here, because its outcome must become known.
	DeliveryTimeout time.Duration
	// Compression is none, gzip, snappy, lz4 or zstd.
	Compression string
	// MaxInFlight is how many events of a topic may be unanswered when more are sent, not
	// counting those that have been for longer than 2 s.
	MaxInFlight int
	// Hooks are told what the clients do, before the sink's own are.
	Hooks []kgo.Hook
}

// Sink implements [relay.Sink] on Kafka. It is safe for concurrent use.
type Sink struct {
	cfg    Config
	pace   pace
	topics *topics
	stop   context.CancelFunc
	ended  sync.WaitGroup

	mu       sync.Mutex
	client   *client
	sends    map[*send]struct{} // those with unanswered events
	answered *sync.Cond         // of mu: there is one less
}

var (
	_ relay.Sink        = (*Sink)(nil)
	_ relay.Topical     = (*Sink)(nil)
	_ relay.DeadLetters = (*Sink)(nil)
)

// New makes a sink. It connects in the background, so a cluster that is away is no
// error here: the sink is not ready until it answers. Close it after use.
func New(cfg Config) (*Sink, error) { return newSink(cfg, usual()) }

func newSink(cfg Config, pace pace) (*Sink, error) {
	s := &Sink{cfg: cfg, pace: pace, topics: newTopics(cfg.MinInsyncReplicas, pace), sends: map[*send]struct{}{}}
	s.answered = sync.NewCond(&s.mu)
	client, err := newClient(cfg, s.topics.terms)
	if err != nil {
		return nil, fmt.Errorf("kafka settings: %w", err)
	}
	s.client = client
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.ended.Go(func() { s.topics.watch(ctx, s.current, func() { s.replaceOutdated(ctx) }) })
	s.ended.Go(func() { s.replaceBroken(ctx) })
	return s, nil
}

// Close ends the sink's connections. Events without an answer are answered as unknown
// before it returns.
func (s *Sink) Close() {
	s.stop()
	s.ended.Wait()
	s.current().Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.sends) > 0 {
		s.answered.Wait()
	}
}

func (s *Sink) current() *client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// Ready implements [relay.Sink].
func (s *Sink) Ready(scope envelope.Scope) error {
	topic := s.cfg.Topic(scope)
	if s.cfg.DeadLetterTopic != nil {
		_ = s.topics.readyForLetters(s.cfg.DeadLetterTopic(scope)) // read now what a letter will need
	}
	if err := s.topics.ready(topic); err != nil {
		return err
	}
	if s.cfg.Ledger != "" {
		if err := s.topics.readyForLedger(s.cfg.Ledger); err != nil {
			return err
		}
	}
	// What has waited for longer may be for one partition, or one broker, that does not answer; the
	// relay bounds what waits so.
	_, events := s.waiting(func(w *send) bool { return w.topic == topic && time.Since(w.begun) < slow })
	if events > int64(s.cfg.MaxInFlight) {
		return fmt.Errorf("topic %q: %d events are unanswered already", topic, events)
	}
	return nil
}

// Topic implements [relay.Topical].
func (s *Sink) Topic(scope envelope.Scope) string { return s.cfg.Topic(scope) }

// AwaitReady waits until events of the scope can be sent, and gives the reason why they
// can't if ctx ends first.
func (s *Sink) AwaitReady(ctx context.Context, scope envelope.Scope) error {
	return s.await(ctx, scope, func(error) bool { return false })
}

// AwaitLook waits until the settings of the scope's topic have been looked at, whatever came of it, or ctx ends.
func (s *Sink) AwaitLook(ctx context.Context, scope envelope.Scope) {
	_ = s.await(ctx, scope, func(why error) bool {
		_, away := s.topics.health()
		return away == nil && !errors.Is(why, errNotRead)
	})
}

// await waits until events of the scope can be sent, the reason why they can't is enough, or ctx ends. It gives that reason.
func (s *Sink) await(ctx context.Context, scope envelope.Scope, enough func(why error) bool) error {
	for {
		next := s.topics.next()
		err := s.Ready(scope)
		if err == nil || enough(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-next:
		}
	}
}

// Health is when a broker last answered, and the error if none does now.
func (s *Sink) Health() (time.Time, error) { return s.topics.health() }
