package verify

import (
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"
)

// slack is how much later than a record the mark of its row may be, with the difference of the two clocks.
const slack = 10 * time.Minute

// history is what a topic still tells of its past.
type history struct {
	topic     string
	compacted bool // older records of a key may be gone
	trimmed   bool // the beginning of a partition is gone
	// moved: a record lies in another partition than its key has now, so there were fewer partitions once.
	moved bool
	// starts are the times of the partitions' first records; zero for those without any.
	starts      []time.Time
	partitioner kgo.TopicPartitioner
}

func newHistory(topic string, partitions int) *history {
	return &history{
		topic: topic, starts: make([]time.Time, partitions),
		// As the relay's own: murmur2 over the key.
		partitioner: kgo.StickyKeyPartitioner(nil).ForTopic(topic),
	}
}

// note takes in a record of whatever part. Those of one partition come in their order.
func (h *history) note(partition int32, at time.Time, key []byte) {
	if h.starts[partition].IsZero() {
		h.starts[partition] = at
	}
	if !h.moved && len(key) == idLength {
		h.moved = h.partition(key) != partition
	}
}

// idLength is the length of an operation id as a key. Other keys are of no use to tell partitions.
const idLength = 36

func (h *history) partition(key []byte) int32 {
	return int32(h.partitioner.Partition(&kgo.Record{Topic: h.topic, Key: key}, len(h.starts)))
}

// reaches tells whether what happened to a partition at an instant must still be in it.
func (h *history) reaches(partition int32, at time.Time) bool {
	if !h.trimmed {
		return true
	}
	start := h.starts[partition]
	return !start.IsZero() && at.After(start.Add(slack))
}

// reachesExport tells the same of an operation's event that was exported at an instant. If the event may have gone to
// another partition than it would now, it must be in time for each.
func (h *history) reachesExport(operation uuid.UUID, at time.Time) bool {
	if !h.moved {
		return h.reaches(h.partition([]byte(operation.String())), at)
	}
	for partition := range h.starts {
		if !h.reaches(int32(partition), at) {
			return false
		}
	}
	return true
}
