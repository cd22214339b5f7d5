package verify

import (
	"fmt"
	"time"
)

// conclude judges what can only be judged at the end. histories are by topic.
func (j *judge) conclude(histories map[string]*history) {
	for key, known := range j.events {
		op := &j.operations[key.operation]
		between := op.first <= key.version && key.version <= op.last
		unread := key.version < 0 && known.state == givenUp // it may be any of those that are missing
		if between || unread {
			op.found++
		}
		example := Example{Operation: op.id, Version: max(key.version, 0), Scope: j.scopes[op.scope], Row: known.row}
		switch {
		case known.row == 0:
			j.add(NoRow, example)
		case known.delivered && known.state == waiting:
			j.add(Unmarked, example)
		case !known.delivered:
			j.missing(histories[j.topics[op.scope]], op, known, example)
		}
	}
	for i := range j.operations {
		op := &j.operations[i]
		if missing := op.last - op.first + 1 - int64(op.found); op.last > 0 && !op.unordered && missing > 0 {
			detail := fmt.Sprintf("%d of the versions %d to %d", missing, op.first, op.last)
			j.add(Gap, Example{Operation: op.id, Scope: j.scopes[op.scope], Detail: detail})
		}
	}
}

// missing judges a row without a delivery.
func (j *judge) missing(h *history, op *operation, known event, example Example) {
	exportedAt := time.UnixMicro(known.exportedAt)
	switch {
	case known.state == givenUp:
		j.add(GivenUp, example)
	case known.state == waiting && op.overtook(example.Version):
		j.add(OutOfOrder, detailed(example, fmt.Sprintf("not exported, and version %d was delivered", op.last)))
	case known.state == waiting:
		j.add(Waiting, example)
	case h.compacted && op.last > 0:
		j.add(Unjudged, detailed(example, "the topic is compacted"))
	case !h.reachesExport(op.id, exportedAt):
		j.add(Unjudged, detailed(example, "the topic's history begins later"))
	default:
		j.add(Lost, detailed(example, "exported at "+exportedAt.UTC().Format(time.RFC3339Nano)))
	}
}

// overtook tells whether a version was delivered while this one, which waits, was not.
func (op *operation) overtook(version int64) bool {
	return version > 0 && version < op.last && !op.unordered
}

// overtaken tells whether a row that waits was overtaken. It may have been given up since it was read, and have let the
// later one pass; then the rows must be looked at again.
func (j *judge) overtaken() bool {
	for key, known := range j.events {
		if known.row != 0 && !known.delivered && known.state == waiting && j.operations[key.operation].overtook(key.version) {
			return true
		}
	}
	return false
}

// takeAgain takes in a row that was given up since it was first read.
func (j *judge) takeAgain(r *row) error {
	n, ok := j.numbers[r.operation]
	if !ok || r.fault != nil || r.state != givenUp {
		return nil
	}
	key := eventKey{n, r.event.StateVersion}
	if known, ok := j.events[key]; ok && known.row == r.id {
		known.state = givenUp
		j.events[key] = known
	}
	return nil
}
