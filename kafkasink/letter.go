package kafkasink

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

var errNoLetterAnswer = relay.Unknown.Wrap(errors.New("sent, but no answer came"))

// Bury implements [relay.DeadLetters]. A letter that is too large for its topic goes
// without its value.
func (s *Sink) Bury(ctx context.Context, letters []envelope.DeadLetter) []error {
	type answer struct {
		i   int
		err error
	}
	answers := make(chan answer, len(letters))
	errs := make([]error, len(letters))
	for i := range letters {
		errs[i] = errNoLetterAnswer
		s.bury(ctx, letters[i], func(err error) { answers <- answer{i, err} })
	}
	for range letters {
		select {
		case a := <-answers:
			errs[a.i] = a.err
		case <-ctx.Done():
			return errs
		}
	}
	return errs
}

func (s *Sink) bury(ctx context.Context, letter envelope.DeadLetter, answer func(error)) {
	topic := s.cfg.DeadLetterTopic(letter.Scope)
	if err := s.topics.readyForLetters(topic); err != nil {
		answer(relay.NotAttempted.Wrap(err))
		return
	}
	this := s.begin(topic, 1)
	settle := func(err error) {
		answer(err)
		s.end(this)
	}
	r, err := s.letterRecord(ctx, this.client, letter)
	if err != nil {
		settle(err)
		return
	}
	this.client.TryProduce(context.Background(), r, func(_ *kgo.Record, err error) {
		if changed(err) {
			s.topics.suspect(topic)
		}
		settle(classify(err))
	})
}

// letterRecord makes a letter's record, without its value if it would be too large with it.
func (s *Sink) letterRecord(ctx context.Context, client *client, letter envelope.DeadLetter) (*kgo.Record, error) {
	topic := s.cfg.DeadLetterTopic(letter.Scope)
	limit := client.limit(topic)
	letter.Topic = s.cfg.Topic(letter.Scope)
	r := letter.Record(true)
	if size := lengthSize + batchSize(r); size > limit {
		if err := s.topics.fresh(ctx, topic); err != nil {
			return nil, relay.NotAttempted.Wrap(err)
		}
		if size <= s.topics.terms(topic).most() {
			return nil, errRaised
		}
		r = letter.Record(false)
	}
	if size := lengthSize + batchSize(r); size > limit {
		return nil, relay.RowFault.Wrap(fmt.Errorf("it takes %d bytes without its value, and topic %q takes %d at most", size, topic, limit))
	}
	return record(topic, r), nil
}
