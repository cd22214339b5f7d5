package main

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
)

var dawn = time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)

// world is a run in which everything went well: operations of two scopes, delivered in order.
type world struct {
	rows       []row
	deliveries []delivery
	malformed  []string
}

func newWorld() *world {
	w := &world{}
	offsets := make([]int64, partitions)
	for version := int64(1); version <= 4; version++ {
		for n := range byte(10) {
			e := event{uuid.UUID{15: n}, version}
			scope := []string{"north", "south"}[n%2]
			at := dawn.Add(time.Duration(len(w.rows)) * time.Second)
			w.rows = append(w.rows, row{event: e, scope: scope, created: at, exported: at.Add(time.Second), isExported: true})
			partition := int32(n % partitions)
			w.deliveries = append(w.deliveries, delivery{e, scope, partition, offsets[partition], at})
			offsets[partition]++
		}
	}
	return w
}

// at gives the places of an operation's version.
func (w *world) at(n byte, version int64) (*row, *delivery) {
	e := event{uuid.UUID{15: n}, version}
	i := slices.IndexFunc(w.rows, func(r row) bool { return r.event == e })
	j := slices.IndexFunc(w.deliveries, func(d delivery) bool { return d.event == e })
	return &w.rows[i], &w.deliveries[j]
}

func (w *world) drop(n byte, version int64) {
	_, d := w.at(n, version)
	gone := d.event
	w.deliveries = slices.DeleteFunc(w.deliveries, func(d delivery) bool { return d.event == gone })
}

// repeat delivers a version once more, behind everything.
func (w *world) repeat(n byte, version int64) {
	_, d := w.at(n, version)
	again := *d
	again.offset, again.sent = 1000, d.sent.Add(time.Minute)
	w.deliveries = append(w.deliveries, again)
}

func TestJudgeFindsWhatIsPlanted(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		plant func(*world)
		want  verdict // the counts
	}{
		{"nothing", func(*world) {}, verdict{}},
		{"a duplicate, which is none of the faults", func(w *world) { w.repeat(3, 2) }, verdict{}},
		{"a lost event", func(w *world) { w.drop(3, 2) }, verdict{lost: 1}},
		{"the last one lost", func(w *world) { w.drop(3, 4) }, verdict{lost: 1}},
		{"two swapped", func(w *world) {
			_, a := w.at(3, 2)
			_, b := w.at(3, 3)
			a.offset, b.offset = b.offset, a.offset
		}, verdict{reordered: 1}},
		{"the first came last", func(w *world) {
			_, d := w.at(3, 1)
			d.offset = 1000
		}, verdict{reordered: 1}},
		{"the same operation in two partitions", func(w *world) {
			_, d := w.at(3, 4)
			d.partition = 5
		}, verdict{reordered: 1}},
		{"a later one again before an earlier one", func(w *world) {
			w.drop(3, 2)
			w.repeat(3, 3)
			w.deliveries = append(w.deliveries, delivery{event{uuid.UUID{15: 3}, 2}, "south", 3, 2000, dawn})
		}, verdict{reordered: 1}},
		{"a parked row", func(w *world) {
			r, _ := w.at(3, 4)
			r.isExported, r.parked = false, true
			w.drop(3, 4)
		}, verdict{parked: 1}},
		{"a row that waits", func(w *world) {
			r, _ := w.at(3, 4)
			r.isExported = false
			w.drop(3, 4)
		}, verdict{left: 1}},
		{"another tenant's scope", func(w *world) {
			_, d := w.at(3, 2)
			d.scope = "north"
		}, verdict{crossed: 1}},
		{"a transition that was never committed", func(w *world) {
			w.deliveries = append(w.deliveries, delivery{event{uuid.UUID{15: 3}, 5}, "south", 3, 1000, dawn})
		}, verdict{unknown: 1}},
		{"no event", func(w *world) { w.malformed = []string{"no key"} }, verdict{malformed: 1}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			c.plant(w)
			rand.Shuffle(len(w.deliveries), func(i, j int) { w.deliveries[i], w.deliveries[j] = w.deliveries[j], w.deliveries[i] })
			got := compare(w.rows, w.deliveries, w.malformed)
			if g, want := counts(got), counts(&c.want); g != want {
				t.Errorf("lost, reordered, parked, malformed, crossed, unknown, left: %v, want %v; %v", g, want, got.examples)
			}
			broken := counts(&c.want) != [7]int{}
			if (got.err() != nil) != broken {
				t.Errorf("err is %v", got.err())
			}
			if broken != (len(got.examples) > 0) {
				t.Errorf("examples: %q", got.examples)
			}
		})
	}
}

func counts(v *verdict) [7]int {
	return [7]int{v.lost, v.reordered, v.parked, v.malformed, v.crossed, v.unknown, v.left}
}

// What was held back on its way may lie behind what was sent after it.
func TestDuplicatesAreFromTheFirstSentToTheSecond(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.repeat(3, 2)
	_, d := w.at(3, 2)
	sent, again := d.sent, w.deliveries[len(w.deliveries)-1].sent
	w.deliveries[len(w.deliveries)-1].sent, d.sent = sent, again
	v := compare(w.rows, w.deliveries, nil)
	if len(v.duplicates) != 1 || v.duplicates[0] != (duplicate{d.event, sent, again}) {
		t.Errorf("duplicates: %v", v.duplicates)
	}
}

func TestMissingTransitions(t *testing.T) {
	t.Parallel()
	w := newWorld()
	known := map[uuid.UUID]int{{15: 1}: 4, {15: 2}: 3} // of the latter one more was committed without our knowing
	if n := missing(w.rows, known); n != 0 {
		t.Errorf("%d operations miss transitions, want 0", n)
	}
	known[uuid.UUID{15: 3}] = 5
	known[uuid.UUID{15: 77}] = 1
	if n := missing(w.rows, known); n != 2 {
		t.Errorf("%d operations miss transitions, want 2", n)
	}
}

func TestParseRecord(t *testing.T) {
	t.Parallel()
	tenant, err := envelope.Tenant("Zürich 3")
	if err != nil {
		t.Fatal(err)
	}
	good := func(scope envelope.Scope) *kgo.Record {
		e := envelope.Event{Namespace: application.Namespace, Scope: scope, OperationID: uuid.UUID{1}, StateVersion: 3,
			Type: "aksara.operation.transition", Time: dawn, Data: []byte(`{"state_version": 3}`)}
		wire := e.Record()
		r := &kgo.Record{Key: wire.Key, Value: wire.Value, Partition: 2, Offset: 5, Timestamp: dawn}
		for _, h := range wire.Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		return r
	}
	for scope, stored := range map[envelope.Scope]string{tenant: "Zürich 3", envelope.NonTenant(): "__aksara_global__"} {
		got, err := parseRecord(good(scope))
		if want := (delivery{event{uuid.UUID{1}, 3}, stored, 2, 5, dawn}); err != nil || got != want {
			t.Errorf("%v: %v, %v, want %v", scope, got, err, want)
		}
	}
	faults := map[string]func(*kgo.Record){
		"key":             func(r *kgo.Record) { r.Key = []byte("x") },
		"no value":        func(r *kgo.Record) { r.Value = nil },
		"ce_id":           func(r *kgo.Record) { r.Key = []byte(uuid.UUID{2}.String()) },
		"ce_stateversion": func(r *kgo.Record) { r.Headers = nil },
		"ce_namespace":    func(r *kgo.Record) { set(r, "ce_namespace", "other") },
		"twice":           func(r *kgo.Record) { r.Headers = append(r.Headers, r.Headers[0]) },
	}
	for want, spoil := range faults {
		r := good(tenant)
		spoil(r)
		if _, err := parseRecord(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}

func set(r *kgo.Record, name, value string) {
	for i := range r.Headers {
		if r.Headers[i].Key == name {
			r.Headers[i].Value = []byte(value)
		}
	}
}
