package relay

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// condemnedFor is for how long it is remembered that the sink refused a row for what it is. What
	// is forgotten, the sink refuses again, or takes, if it takes more by then.
	condemnedFor  = 10 * time.Second
	mostCondemned = 10_000
)

// condemned remembers rows that the sink refused for what they are, which made their transaction
// fail: so that the next one is begun without them. It is safe for concurrent use.
type condemned struct {
	mu   sync.Mutex
	rows map[rowKey]sentence
}

// rowKey tells a row from another that has got its id in a database that was restored.
type rowKey struct {
	id        int64
	operation uuid.UUID
	created   int64
}

func keyOf(row *Row) rowKey { return rowKey{row.ID, row.OperationID, row.CreatedAt.UnixMicro()} }

type sentence struct {
	why  error
	ends time.Time
}

func (c *condemned) add(row *Row, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rows == nil || len(c.rows) >= mostCondemned {
		c.rows = map[rowKey]sentence{}
	}
	c.rows[keyOf(row)] = sentence{why, time.Now().Add(condemnedFor)}
}

// mark puts down against rows why they can't be sent.
func (c *condemned) mark(rows []Row) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range rows {
		key := keyOf(&rows[i])
		switch s, ok := c.rows[key]; {
		case !ok:
		case time.Now().After(s.ends):
			delete(c.rows, key)
		case rows[i].Err == nil:
			rows[i].Err = s.why
		}
	}
}

// condemn remembers which events of an aborted transaction were refused for what they are: all
// others are then sent at once. If one failed otherwise, its operation waits: the first row gets
// that answer.
func (w *slotWorker) condemn(rows []*Row, answers []error) {
	first := map[uuid.UUID]int{}
	for i, row := range rows {
		head, ok := first[row.OperationID]
		if !ok {
			head = i
			first[row.OperationID] = i
		}
		switch class := ClassOf(answers[i]); {
		case class == RowFault:
			w.condemned.add(row, answers[i])
			answers[i] = errAborted
		case isGuilty(answers[i]) && !isGuilty(answers[head]):
			answers[head] = answers[i]
		}
	}
}
