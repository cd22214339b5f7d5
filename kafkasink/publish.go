package kafkasink

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

// send is one Publish with unanswered events.
type send struct {
	client *client
	topic  string
	begun  time.Time
	open   atomic.Int64
}

// Publish implements [relay.Sink]. It does not wait for answers.
func (s *Sink) Publish(ctx context.Context, events []envelope.Event, answer func(int, error)) {
	topic := s.cfg.Topic(events[0].Scope)
	if err := s.topics.ready(topic); err != nil {
		for i := range events {
			answer(i, relay.NotAttempted.Wrap(err))
		}
		return
	}
	this := s.begin(topic, len(events))
	limit := this.client.limit(topic)
	settle := func(i int, err error) {
		answer(i, err)
		s.end(this)
	}

	// An operation whose event was refused gets no further event into the client.
	refused := map[uuid.UUID]bool{}
	var large []oversized
	var records []*kgo.Record
	var index []int
	for i := range events {
		operation := events[i].OperationID
		if refused[operation] {
			settle(i, errBehind)
			continue
		}
		r := events[i].Record()
		if size := lengthSize + batchSize(r); size > limit {
			refused[operation] = true
			large = append(large, oversized{i, size})
			continue
		}
		records = append(records, record(topic, r))
		index = append(index, i)
	}
	this.client.handOver(records, func(n int, err error) {
		if changed(err) {
			s.topics.suspect(topic)
		}
		settle(index[n], classify(err))
	})
	s.judgeSizes(ctx, topic, large, settle)
}

// oversized is an event that is larger than its client sends to the topic.
type oversized struct{ index, size int }

// judgeSizes answers events that are too large, by settings that are read for it: the
// limit may have been raised because of these very events.
func (s *Sink) judgeSizes(ctx context.Context, topic string, events []oversized, answer func(int, error)) {
	if len(events) == 0 {
		return
	}
	err := s.topics.fresh(ctx, topic)
	limit := s.topics.terms(topic).most()
	for _, e := range events {
		switch {
		case err != nil:
			answer(e.index, relay.NotAttempted.Wrap(err))
		case e.size > limit:
			answer(e.index, tooLarge(topic, e.size, limit))
		default:
			answer(e.index, errRaised)
		}
	}
}

var errRaised = relay.NotAttempted.Wrap(errors.New("the topic's limit was raised just now"))

var errBehind = relay.NotAttempted.Wrap(errors.New("an earlier event of the operation was refused"))

func tooLarge(topic string, size, limit int) error {
	return relay.RowFault.Wrap(fmt.Errorf("the event takes %d bytes, and topic %q takes %d at most (max.message.bytes, segment.bytes)", size, topic, limit))
}

// changed is true for answers that hint at a topic with other settings than were read.
func changed(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge) ||
		errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID)
}

// record is an event's wire form as the client takes it. The client sets its timestamp
// to the time of sending.
func record(topic string, r envelope.Record) *kgo.Record {
	headers := make([]kgo.RecordHeader, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = kgo.RecordHeader{Key: h.Key, Value: h.Value}
	}
	return &kgo.Record{Topic: topic, Key: r.Key, Value: r.Value, Headers: headers}
}

func (s *Sink) begin(topic string, events int) *send {
	s.mu.Lock()
	defer s.mu.Unlock()
	this := &send{client: s.client, topic: topic, begun: time.Now()}
	this.open.Store(int64(events))
	s.sends[this] = struct{}{}
	return this
}

func (s *Sink) end(this *send) {
	if this.open.Add(-1) > 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sends, this)
	s.answered.Broadcast()
}

// waiting is for how long the oldest unanswered one of some sends has waited, and how many
// events of them are unanswered. which is called with s.mu held.
func (s *Sink) waiting(which func(*send) bool) (longest time.Duration, events int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.sends {
		if which(w) {
			longest, events = max(longest, time.Since(w.begun)), events+w.open.Load()
		}
	}
	return longest, events
}
