package store_test

import (
	"fmt"
	"sync"

	"github.com/google/uuid"

	"outboxrelay/relay"
)

// deliveries is what a sink was given. It holds the order of first deliveries against
// that of versions. The zero value is ready.
type deliveries struct {
	mu     sync.Mutex
	times  map[int64]int       // deliveries of a row
	newest map[uuid.UUID]int64 // last row of an operation that was delivered for the first time
}

// add delivers one row. It errs if a later row of its operation came before.
func (d *deliveries) add(row *relay.Row) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.times == nil {
		d.times, d.newest = map[int64]int{}, map[uuid.UUID]int64{}
	}
	if d.times[row.ID]++; d.times[row.ID] > 1 {
		return nil
	}
	if last := d.newest[row.OperationID]; last > row.ID {
		return fmt.Errorf("row %d of operation %s was first delivered after row %d", row.ID, row.OperationID, last)
	}
	d.newest[row.OperationID] = row.ID
	return nil
}

// count is how many rows were delivered at least once.
func (d *deliveries) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.times)
}

// of is how often a row was delivered.
func (d *deliveries) of(id int64) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.times[id]
}
