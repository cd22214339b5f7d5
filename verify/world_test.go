package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
)

const (
	testNamespace = "orders"
	testType      = "aksara.operation.transition"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is an outbox and its topics in memory.
type world struct {
	*rules
	partitions int
	keys       *history // of that many partitions, for their partitioner
	compacted  bool
	rows       []*row
	records    []*record // those of a partition in their order
	trimmed    map[int32]int
	clock      time.Time
	ids        int64
	again      func() // before the rows are read a second time, if not nil
	reads      int
}

func newWorld(t testing.TB, scopes ...envelope.Scope) *world {
	t.Helper()
	if scopes == nil {
		scopes = []envelope.Scope{tenant(t, "acme"), tenant(t, "globex"), envelope.NonTenant()}
	}
	r, err := newRules(Config{
		Namespace: testNamespace, Scopes: scopes, Topic: func(envelope.Scope) string { return "events" }, Database: noDatabase{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &world{rules: r, partitions: 3, trimmed: map[int32]int{}, clock: epoch}
}

type noDatabase struct{ Database }

func tenant(t testing.TB, id string) envelope.Scope {
	t.Helper()
	scope, err := envelope.Tenant(id)
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

// write adds a row that waits.
func (w *world) write(scope int, operation uuid.UUID, version int64) *row {
	data := fmt.Appendf(nil, `{"operation_id": %q, "state_version": %d}`, operation, version)
	e, err := envelope.New(w.namespace, w.scopes[scope], operation, testType, w.clock, data)
	if err != nil {
		panic(err)
	}
	w.ids++
	r := &row{id: w.ids, scope: scope, operation: operation, event: e}
	w.rows = append(w.rows, r)
	return r
}

// deliver adds a row's record.
func (w *world) deliver(r *row) *record {
	if w.keys == nil || len(w.keys.starts) != w.partitions {
		w.keys = newHistory("events", w.partitions)
	}
	record := &record{
		place: Place{w.topics[r.scope], w.keys.partition([]byte(r.operation.String())), int64(len(w.records))},
		at:    w.clock, event: r.event,
	}
	w.records = append(w.records, record)
	return record
}

// mark marks a row exported.
func (w *world) mark(r *row) { r.state, r.exportedAt = exported, w.clock }

// export delivers and marks the next versions of a new operation.
func (w *world) export(scope int, versions int64) (rows []*row) {
	operation := uuid.New()
	for v := range versions {
		r := w.write(scope, operation, v+1)
		w.deliver(r)
		w.clock = w.clock.Add(time.Second)
		w.mark(r)
		rows = append(rows, r)
	}
	return rows
}

// of gives the record that first delivered a row.
func (w *world) of(r *row) *record {
	i := slices.IndexFunc(w.records, func(d *record) bool {
		return d.event.OperationID == r.operation && d.event.StateVersion == r.event.StateVersion
	})
	return w.records[i]
}

// drop takes a row's records away.
func (w *world) drop(r *row) {
	w.records = slices.DeleteFunc(w.records, func(d *record) bool {
		return d.event.OperationID == r.operation && d.event.StateVersion == r.event.StateVersion
	})
}

// prune takes a row away.
func (w *world) prune(r *row) {
	w.rows = slices.DeleteFunc(w.rows, func(other *row) bool { return other == r })
}

// swap puts each of two records into the other's place.
func (w *world) swap(a, b *record) {
	a.event, b.event = b.event, a.event
}

// verify compares in passes of about that many records, which hold at most so much.
func (w *world) verify(t testing.TB, passRecords int64, most int) *Result {
	t.Helper()
	r := &run{rules: w.rules, most: most, passRecords: passRecords, table: worldTable{w}, topics: worldTopics{w}}
	result, err := r.all(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// found is how many there are of each kind.
func found(result *Result) map[Kind]int64 {
	kinds := map[Kind]int64{}
	for _, f := range result.Findings {
		kinds[f.Kind] = f.Count
	}
	return kinds
}

func wantFound(t testing.TB, result *Result, want map[Kind]int64) {
	t.Helper()
	if got := found(result); !maps.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
		for _, f := range result.Findings {
			t.Logf("%s: %v", f.Kind, f.Examples)
		}
	}
}

// The world as it is read.
type (
	worldTable  struct{ *world }
	worldTopics struct{ *world }
)

func (w worldTable) read(_ context.Context, p part, take func(*row) error) error {
	if w.reads++; w.reads > 1 && w.again != nil {
		w.again()
	}
	for _, r := range w.rows {
		if b := bucket(r.operation); b < p.from || b > p.to {
			continue
		}
		if err := take(r); err != nil {
			return err
		}
	}
	return nil
}

func (w worldTopics) size(context.Context) (int64, error) { return int64(len(w.records)), nil }

func (w worldTopics) read(_ context.Context, p part, take func(*history, *record) error) (map[string]*history, error) {
	histories := map[string]*history{}
	for _, topic := range w.topics {
		histories[topic] = newHistory(topic, w.partitions)
		histories[topic].compacted = w.compacted
		histories[topic].trimmed = len(w.trimmed) > 0
	}
	gone := maps.Clone(w.trimmed)
	for _, r := range w.records {
		if gone[r.place.Partition]--; gone[r.place.Partition] >= 0 {
			continue
		}
		key := []byte(r.event.OperationID.String())
		h := histories[r.place.Topic]
		h.note(r.place.Partition, r.at, key)
		if !p.holds(key) {
			continue
		}
		if err := take(h, r); err != nil {
			return nil, err
		}
	}
	return histories, nil
}
