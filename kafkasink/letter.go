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
	letter.Topic = s.cfg.Topic(letter.Scope)
	this := s.begin(topic, 1)
	settle := func(err error) {
		answer(err)
		s.end(this)
	}
	limit := this.client.limit(topic)
	r := letter.Record(true)
	if size := lengthSize + batchSize(r); size > limit {
		if err := s.topics.fresh(ctx, topic); err != nil {
			settle(relay.NotAttempted.Wrap(err))
			return
		}
		if size <= s.topics.terms(topic).most() {
			settle(errRaised)
			return
		}
		r = letter.Record(false)
	}
	if size := lengthSize + batchSize(r); size > limit {
		settle(relay.RowFault.Wrap(fmt.Errorf("it takes %d bytes without its value, and topic %q takes %d at most", size, topic, limit)))
		return
	}
	this.client.TryProduce(context.Background(), record(topic, r), func(_ *kgo.Record, err error) {
		if changed(err) {
			s.topics.suspect(topic)
		}
		settle(classify(err))
	})
}
