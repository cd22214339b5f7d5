package verify

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/google/uuid"

	"outboxrelay/envelope"
)

const (
	memoryLimit  = 200 << 20
	manyVersions = 4 // of each operation
)

// crowd is an outbox of many operations and its topic, all exported. It is made anew whenever it is read, so that only
// the verification takes memory.
type crowd struct {
	*rules
	buckets []uint16 // of the operations
	lost    int      // the operation of which one record is missing
}

func newCrowd(t testing.TB, operations int) *crowd {
	c := &crowd{rules: newWorld(t).rules, buckets: make([]uint16, operations), lost: operations / 2}
	for n := range c.buckets {
		c.buckets[n] = bucket(c.id(n))
	}
	return c
}

func (c *crowd) id(n int) (id uuid.UUID) {
	source := rand.NewPCG(uint64(n), 1)
	binary.BigEndian.PutUint64(id[:8], source.Uint64())
	binary.BigEndian.PutUint64(id[8:], source.Uint64())
	return id
}

// each calls take for all versions of the part's operations.
func (c *crowd) each(p part, take func(n int, e *envelope.Event) error) error {
	var data []byte
	for n, b := range c.buckets {
		if b < p.from || b > p.to {
			continue
		}
		id := c.id(n)
		for v := range int64(manyVersions) {
			data = fmt.Appendf(data[:0], `{"event": "retry_scheduled", "to_state": "ready", "state_version": %d}`, v+1)
			e := envelope.Event{
				Namespace: c.namespace, Scope: c.scopes[0], OperationID: id, StateVersion: v + 1, Type: testType, Time: epoch, Data: data,
			}
			if err := take(n, &e); err != nil {
				return err
			}
		}
	}
	return nil
}

type (
	crowdTable  struct{ *crowd }
	crowdTopics struct{ *crowd }
)

func (c crowdTable) read(_ context.Context, p part, take func(*row) error) error {
	r := row{state: exported, exportedAt: epoch}
	return c.each(p, func(n int, e *envelope.Event) error {
		r.id, r.operation, r.event = int64(n)*manyVersions+e.StateVersion, e.OperationID, *e
		return take(&r)
	})
}

func (c crowdTopics) size(context.Context) (int64, error) {
	return int64(len(c.buckets)) * manyVersions, nil
}

func (c crowdTopics) read(_ context.Context, p part, take func(*history, *record) error) (map[string]*history, error) {
	h, r := newHistory("events", 1), record{at: epoch}
	err := c.each(p, func(n int, e *envelope.Event) error {
		if n == c.lost && e.StateVersion == manyVersions {
			return nil
		}
		r.place, r.event = Place{"events", 0, int64(n)*manyVersions + e.StateVersion}, *e
		return take(h, &r)
	})
	return map[string]*history{"events": h}, err
}

// compareCrowd compares a crowd of so many rows and gives the most heap, in bytes, that it took more than there was
// before. Nothing may run beside it, since it measures the whole process. A share below 1 makes do with
// that much of what a verification keeps in mind.
func compareCrowd(t testing.TB, rows int, share float64) (heap int64) {
	c := newCrowd(t, rows/manyVersions)
	r := &run{
		rules: c.rules, most: int(heldMost * share), passRecords: int64(passRecords * share),
		table: crowdTable{c}, topics: crowdTopics{c},
	}
	before := heapNow(true)
	r.tell = func(Progress) { heap = max(heap, heapNow(false)-before) }
	result, err := r.all(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantFound(t, result, map[Kind]int64{Lost: 1})
	if result.Rows != int64(rows) || result.Records != int64(rows)-1 {
		t.Errorf("compared %d rows with %d records", result.Rows, result.Records)
	}
	t.Logf("%d rows in %d passes: %d KiB of heap at most", rows, result.Passes, heap>>10)
	return heap
}

func heapNow(collected bool) int64 {
	if collected {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A twentieth of everything; the benchmark takes it all.
func TestMemoryIsBounded(t *testing.T) {
	const part = 20
	if heap := compareCrowd(t, 5_000_000/part, 1.0/part); heap > memoryLimit/part {
		t.Errorf("%d bytes of heap, want %d at most", heap, memoryLimit/part)
	}
}

func BenchmarkFiveMillionRows(b *testing.B) {
	for b.Loop() {
		heap := compareCrowd(b, 5_000_000, 1)
		if heap > memoryLimit {
			b.Errorf("%d MiB of heap, want %d at most", heap>>20, memoryLimit>>20)
		}
		b.ReportMetric(float64(heap>>20), "heap-MiB")
	}
}
