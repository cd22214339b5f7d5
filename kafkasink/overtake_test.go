package kafkasink

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/relay"
)

// stall holds up the handing over of a second record until the first one has failed, or for a moment: a busy machine does that.
type stall struct {
	records atomic.Int64
	failed  chan struct{}
}

func (s *stall) OnProduceRecordBuffered(*kgo.Record) {
	if s.records.Add(1) == 2 {
		select {
		case <-s.failed:
		case <-time.After(300 * time.Millisecond): // it can't fail meanwhile, which is what is tested
		}
	}
}

// An event whose predecessor is refused at this very moment does not overtake it.
func TestNothingOvertakesWhatIsRefusedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]*kerr.Error{"server error": kerr.UnknownServerError, "too large": kerr.MessageTooLarge} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := kafkatest.Fake(t)
			cfg := config(broker.Broker, broker.Topic(t, 1, nil))
			hold := &stall{failed: make(chan struct{})}
			cfg.Hooks = []kgo.Hook{hold}
			sink := openReady(t, cfg, quick())
			broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: refusal})
			operation := uuid.New()
			var events []envelope.Event
			for version := range 5 {
				events = append(events, event(t, operation, version+1, 100))
			}
			errs := make(chan error, len(events))
			sink.Publish(t.Context(), events, func(i int, err error) {
				if i == 0 {
					close(hold.failed)
				}
				errs <- err
			})
			for range events {
				if err := <-errs; relay.ClassOf(err) == relay.Delivered {
					t.Error("an event was delivered although its predecessor was refused")
				}
			}
		})
	}
}
