package kafkasink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

const (
	// transactionMargin is how much later than the relay gives a transaction up the broker aborts
	// it by itself. Consumers that read committed records wait for so long, and up to 10 s more,
	// where a relay was lost and none is left.
	transactionMargin = 5 * time.Second
	openTimeout       = 10 * time.Second // for taking a slot, or fencing another's
)

var _ relay.Transactions = (*Sink)(nil)

// session implements [relay.Session] by a client of its own.
type session struct {
	sink   *Sink
	slot   relay.Slot
	client *client
}

// Open implements [relay.Transactions].
func (s *Sink) Open(ctx context.Context, slot relay.Slot) (relay.Session, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, fmt.Errorf("no answer from Kafka in %s", openTimeout))
	defer cancel()
	if err := cmp.Or(s.ledgerReady(ctx), s.ledgerHas(slot)); err != nil {
		return nil, err
	}
	client, err := newClient(s.cfg, s.topics.terms,
		kgo.TransactionalID(slot.ID), kgo.TransactionTimeout(s.cfg.transactionTimeout()),
		kgo.RecordPartitioner(s.partitioner()))
	if err != nil {
		return nil, fmt.Errorf("kafka settings: %w", err)
	}
	// Now and not with the first record, which is when the client would ask by itself: whoever
	// takes the slot between a claim and that would be fenced by us, and not we by it.
	if _, _, err := client.ProducerID(ctx); err != nil {
		client.Close()
		return nil, s.cfg.explainID(slot.ID, because(ctx, err))
	}
	return &session{sink: s, slot: slot, client: client}, nil
}

func (c Config) transactionTimeout() time.Duration { return c.DeliveryTimeout + transactionMargin }

// partitioner places events by their key, and entries in their slot's partition.
func (s *Sink) partitioner() kgo.Partitioner {
	byKey, given := kgo.StickyKeyPartitioner(nil), kgo.ManualPartitioner()
	return partitionerFunc(func(topic string) kgo.TopicPartitioner {
		if topic == s.cfg.Ledger {
			return given.ForTopic(topic)
		}
		return byKey.ForTopic(topic)
	})
}

type partitionerFunc func(topic string) kgo.TopicPartitioner

func (f partitionerFunc) ForTopic(topic string) kgo.TopicPartitioner { return f(topic) }

// Fence implements [relay.Transactions].
func (s *Sink) Fence(ctx context.Context, slot relay.Slot) error {
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, fmt.Errorf("no answer from Kafka in %s", openTimeout))
	defer cancel()
	if err := s.cfg.fence(ctx, s.current().Client, slot.ID); err != nil {
		return s.cfg.explainID(slot.ID, err)
	}
	return nil
}

// Commit implements [relay.Session].
func (t *session) Commit(ctx context.Context, entry relay.Entry, events []envelope.Event, letters []envelope.DeadLetter) (answers []error, err error) {
	records, answers := t.records(ctx, events, letters)
	if answers != nil {
		return answers, errRefused
	}
	if t.client.outdated() {
		return nil, errOutdated
	}
	if err := t.client.BeginTransaction(); err != nil {
		return nil, fmt.Errorf("begin transaction: %w", fenced(err))
	}
	if answers, err = t.produce(ctx, append(records, ledgerRecord(t.sink.cfg.Ledger, t.slot, entry))); err != nil {
		if lost := fenced(err); relay.ClassOf(lost) == relay.NotAttempted {
			return nil, lost // what brokers say of the records is about the slot, and not about their topics
		}
		return answers[:len(records)], err
	}
	if err := t.client.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return nil, fmt.Errorf("commit transaction: %w", fenced(because(ctx, err)))
	}
	return nil, nil
}

var (
	errRefused  = relay.NotAttempted.Wrap(errors.New("the transaction was not begun, because of an event that can't be sent"))
	errOutdated = relay.NotAttempted.Wrap(errors.New("a topic's settings have changed, and another client is made"))
)

// fenced adds [relay.ErrFenced] to what brokers answer to who has lost its transactional id, or
// whose transaction was ended for it.
func fenced(err error) error {
	for _, sign := range []error{kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidTxnState} {
		if errors.Is(err, sign) {
			return relay.NotAttempted.Wrap(fmt.Errorf("%w: %w", relay.ErrFenced, err))
		}
	}
	if errors.Is(err, kerr.InvalidProducerIDMapping) { // the brokers forgot a slot that was idle for very long
		return relay.NotAttempted.Wrap(err)
	}
	return err
}

// records makes what goes into a transaction; or, if some of it can't be sent as it is, answers say
// why.
func (t *session) records(ctx context.Context, events []envelope.Event, letters []envelope.DeadLetter) (records []*kgo.Record, answers []error) {
	var large []oversized
	for i := range events {
		topic := t.sink.cfg.Topic(events[i].Scope)
		if err := t.sink.topics.ready(topic); err != nil {
			return nil, all(len(events)+len(letters), relay.NotAttempted.Wrap(err))
		}
		r := events[i].Record()
		if size := lengthSize + batchSize(r); size > t.client.limit(topic) {
			large = append(large, oversized{i, size})
		}
		records = append(records, record(topic, r))
	}
	faults := map[int]error{}
	for _, one := range large {
		t.sink.judgeSizes(ctx, records[one.index].Topic, []oversized{one}, func(i int, err error) { faults[i] = err })
	}
	for i, letter := range letters {
		if err := t.sink.topics.readyForLetters(t.sink.cfg.DeadLetterTopic(letter.Scope)); err != nil {
			faults[len(events)+i] = relay.Environment.Wrap(err)
			continue
		}
		r, err := t.sink.letterRecord(ctx, t.client, letter)
		if err != nil {
			faults[len(events)+i] = err
			continue
		}
		records = append(records, r)
	}
	if len(faults) == 0 {
		return records, nil
	}
	answers = all(len(events)+len(letters), errRefused)
	for i, err := range faults {
		answers[i] = err
	}
	return nil, answers
}

// all gives the same answer to so many events.
func all(n int, err error) []error {
	answers := make([]error, n)
	for i := range answers {
		answers[i] = err
	}
	return answers
}

// produce sends records, and waits for the answer to each: the client would commit a
// transaction of which one record failed. The first failure ends it.
func (t *session) produce(ctx context.Context, records []*kgo.Record) (answers []error, err error) {
	type answer struct {
		i   int
		err error
	}
	given := make(chan answer, len(records))
	for i, r := range records {
		// Not with ctx: a record that is cancelled could make a later one of its partition fail too.
		t.client.TryProduce(context.Background(), r, func(_ *kgo.Record, err error) { given <- answer{i, err} })
	}
	answers = all(len(records), errNoTransactionAnswer)
	for range records {
		select {
		case a := <-given:
			if changed(a.err) {
				t.sink.topics.suspect(records[a.i].Topic)
			}
			if answers[a.i] = classify(a.err); a.err != nil && err == nil {
				err = a.err
			}
		case <-ctx.Done():
			if err == nil {
				err = context.Cause(ctx)
			}
			return answers, err
		}
	}
	return answers, err
}

var errNoTransactionAnswer = relay.Unknown.Wrap(errors.New("sent, but no answer came"))

// Close implements [relay.Session].
func (t *session) Close() { t.client.Close() }
