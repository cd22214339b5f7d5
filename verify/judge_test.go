package verify

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
)

// Each of these happens in normal work, or is what a user did, and is no fault.
func TestNoFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*world, []*row) // of an operation's three rows, all exported
		want   map[Kind]int64
	}{
		"all is well": {func(*world, []*row) {}, nil},
		"redelivered": {func(w *world, rows []*row) { w.deliver(rows[1]); w.deliver(rows[2]) }, map[Kind]int64{Duplicated: 2}},
		"pruned":      {func(w *world, rows []*row) { w.prune(rows[0]); w.prune(rows[1]) }, map[Kind]int64{NoRow: 2}},
		"waits": {func(w *world, rows []*row) {
			w.write(rows[0].scope, rows[0].operation, 4)
			w.write(rows[0].scope, uuid.New(), 1)
		}, map[Kind]int64{Waiting: 2}},
		"delivered, not marked yet": {func(w *world, rows []*row) { rows[2].state = waiting }, map[Kind]int64{Unmarked: 1}},
		"discarded":                 {func(w *world, rows []*row) { w.drop(rows[1]); rows[1].state = givenUp }, map[Kind]int64{GivenUp: 1}},
		"the first one discarded":   {func(w *world, rows []*row) { w.drop(rows[0]); rows[0].state = givenUp }, map[Kind]int64{GivenUp: 1}},
		"given up without being an event": {func(w *world, rows []*row) {
			w.drop(rows[1])
			rows[1].event, rows[1].fault, rows[1].state = envelope.Event{}, errors.New("no object"), givenUp
		}, map[Kind]int64{GivenUp: 1}},
		"discarded and pruned": {func(w *world, rows []*row) { w.drop(rows[1]); w.prune(rows[1]) }, map[Kind]int64{Gap: 1}},
		"written after the table was read": {func(w *world, rows []*row) {
			r := w.write(rows[0].scope, rows[0].operation, 4)
			w.deliver(r)
			w.prune(r)
		}, map[Kind]int64{NoRow: 1}},
		"of another application": {func(w *world, rows []*row) {
			r := w.write(0, uuid.New(), 1)
			w.deliver(r).event.Namespace = "billing"
			w.prune(r)
		}, map[Kind]int64{Others: 1}},
		"a tenant that isn't asked for": {func(w *world, rows []*row) {
			r := w.write(0, uuid.New(), 1)
			w.deliver(r).event.Scope = tenant(t, "initech")
			w.prune(r)
		}, map[Kind]int64{Others: 1}},
		"parked without being an event": {func(w *world, rows []*row) {
			w.write(0, uuid.New(), 1).fault = errors.New("no object")
		}, map[Kind]int64{Waiting: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.export(0, 2)
			test.change(w, w.export(1, 3))
			result := w.verify(t, 100, 0)
			wantFound(t, result, test.want)
			if err := result.Err(); err != nil {
				t.Errorf("a fault where there is none: %v", err)
			}
		})
	}
}

// plants are faults, each to be found among an operation's four exported rows.
func plants(t testing.TB) map[string]struct {
	plant func(*world, []*row)
	want  map[Kind]int64
} {
	t.Helper()
	acme := tenant(t, "acme")
	return map[string]struct {
		plant func(*world, []*row)
		want  map[Kind]int64
	}{
		"lost":             {func(w *world, rows []*row) { w.drop(rows[1]) }, map[Kind]int64{Lost: 1}},
		"the last is lost": {func(w *world, rows []*row) { w.drop(rows[3]) }, map[Kind]int64{Lost: 1}},
		"all are lost": {func(w *world, rows []*row) {
			for _, r := range rows {
				w.drop(r)
			}
		}, map[Kind]int64{Lost: 4}},
		"marked exported, and no events": {func(w *world, rows []*row) {
			for _, r := range rows[2:] {
				w.drop(r)
				r.event, r.fault = envelope.Event{}, errors.New("no object")
			}
		}, map[Kind]int64{Lost: 2}},
		"out of order": {func(w *world, rows []*row) { w.swap(w.of(rows[1]), w.of(rows[2])) }, map[Kind]int64{OutOfOrder: 1}},
		"the first came last": {func(w *world, rows []*row) {
			w.drop(rows[0])
			w.deliver(rows[0])
		}, map[Kind]int64{OutOfOrder: 1}},
		"overtaken while it waits": {func(w *world, rows []*row) {
			w.drop(rows[2])
			rows[2].state = waiting
		}, map[Kind]int64{OutOfOrder: 1}},
		"another tenant's name": {func(w *world, rows []*row) {
			w.of(rows[1]).event.Scope = acme
		}, map[Kind]int64{WrongScope: 1, Lost: 1}},
		"a stranger's name": {func(w *world, rows []*row) {
			w.of(rows[1]).event.Scope = tenant(t, "initech")
		}, map[Kind]int64{WrongScope: 1, Lost: 1}},
		"a copy under the non-tenant scope": {func(w *world, rows []*row) {
			w.deliver(rows[1]).event.Scope = envelope.NonTenant()
		}, map[Kind]int64{WrongScope: 1}},
		"another namespace": {func(w *world, rows []*row) {
			w.of(rows[1]).event.Namespace = "Orders"
		}, map[Kind]int64{WrongScope: 1, Lost: 1}},
		"another tenant's topic": {func(w *world, rows []*row) {
			w.of(rows[1]).place.Topic = w.topics[0]
		}, map[Kind]int64{WrongScope: 1, Lost: 1}},
		"two names, without rows": {func(w *world, rows []*row) {
			for _, r := range rows {
				w.prune(r)
			}
			w.of(rows[3]).event.Scope = acme
		}, map[Kind]int64{WrongScope: 1, NoRow: 3}},
		"malformed": {func(w *world, rows []*row) {
			w.of(rows[1]).fault = errors.New("no header")
		}, map[Kind]int64{Malformed: 1, Lost: 1}},
		"a stray malformed record": {func(w *world, rows []*row) {
			w.deliver(rows[1]).fault = errors.New("no header")
		}, map[Kind]int64{Malformed: 1}},
		"another value": {func(w *world, rows []*row) {
			w.of(rows[1]).event.Data = []byte(`{"state_version":2}`)
		}, map[Kind]int64{Altered: 1}},
		"another type":  {func(w *world, rows []*row) { w.of(rows[1]).event.Type = "x" }, map[Kind]int64{Altered: 1}},
		"another time":  {func(w *world, rows []*row) { w.of(rows[1]).event.Time = epoch.Add(-1) }, map[Kind]int64{Altered: 1}},
		"another again": {func(w *world, rows []*row) { w.deliver(rows[1]).event.Type = "x" }, map[Kind]int64{Altered: 1, Duplicated: 1}},
		"another again, without a row": {func(w *world, rows []*row) {
			w.deliver(rows[1]).event.Type = "x"
			w.prune(rows[1])
		}, map[Kind]int64{Altered: 1, Duplicated: 1, NoRow: 1}},
	}
}

func TestPlantedFaults(t *testing.T) {
	t.Parallel()
	for name, test := range plants(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.topics = []string{"of-acme", "events", "events"}
			w.export(0, 3)
			test.plant(w, w.export(1, 4))
			w.export(1, 2)
			result := w.verify(t, 100, 0)
			wantFound(t, result, test.want)
			if result.Err() == nil || result.Level() != Fault {
				t.Errorf("it is no fault: %v", result.Findings)
			}
			for _, f := range result.Findings {
				if len(f.Examples) != int(f.Count) || f.Examples[0].String() == "" {
					t.Errorf("%s has examples %v", f.Kind, f.Examples)
				}
			}
		})
	}
}

func TestDuplicatesAreFaultsInExactlyOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deliver(w.export(0, 1)[0])
	for exactlyOnce, level := range map[bool]Level{false: Warning, true: Fault} {
		w.exactlyOnce = exactlyOnce
		if result := w.verify(t, 100, 0); result.Level() != level {
			t.Errorf("exactly once %t: %v", exactlyOnce, result.Findings)
		}
	}
}

// A row that was discarded while the topic was read lets later ones pass, and that looks like an overtaking.
func TestRowsThatWereGivenUpMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rows := w.export(0, 3)
	w.drop(rows[1])
	rows[1].state = waiting
	w.again = func() { rows[1].state = givenUp }
	wantFound(t, w.verify(t, 100, 0), map[Kind]int64{GivenUp: 1})
	if w.reads != 2 {
		t.Errorf("the rows were read %d times", w.reads)
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.partitions = 1
	early := w.export(0, 3)
	w.clock = w.clock.Add(2 * slack)
	late := w.export(0, 3)
	w.trimmed[0] = 2
	wantFound(t, w.verify(t, 100, 0), map[Kind]int64{Unjudged: 2})

	w.drop(late[1])
	result := w.verify(t, 100, 0)
	wantFound(t, result, map[Kind]int64{Unjudged: 2, Lost: 1})
	if e := result.Find(Lost).Examples[0]; e.Row != late[1].id || e.Event() != late[1].event.ID() {
		t.Errorf("lost is %v", e)
	}
	if e := result.Find(Unjudged).Examples; e[0].Row != early[0].id || e[1].Row != early[1].id {
		t.Errorf("unjudged are %v", e)
	}
}

func TestRetentionHasTakenAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.partitions = 1
	w.export(0, 3)
	w.trimmed[0] = 3
	wantFound(t, w.verify(t, 100, 0), map[Kind]int64{Unjudged: 3})
}

// What is left of redelivered events looks out of order.
func TestRetentionHasTakenFirstDeliveries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.partitions = 1
	rows := w.export(0, 3)
	w.deliver(rows[1])
	w.trimmed[0] = 2
	wantFound(t, w.verify(t, 100, 0), map[Kind]int64{Unjudged: 2})
}

// Between a redelivered event and a later one, versions seem to be missing.
func TestRetentionHasTakenWhatLiesBetween(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.partitions = 1
	rows := w.export(0, 4)
	w.drop(rows[3])
	w.deliver(rows[0])
	w.deliver(rows[3])
	w.prune(rows[1])
	w.prune(rows[2])
	w.trimmed[0] = 3
	wantFound(t, w.verify(t, 100, 0), nil)
}

// With more partitions than before, an operation's records lie in two of them.
func TestMovedPartitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.partitions = 1
	operation := uuid.New()
	for newHistory("events", 3).partition([]byte(operation.String())) == 0 {
		operation = uuid.New()
	}
	for v := range int64(4) {
		if v == 2 {
			w.partitions = 3
		}
		r := w.write(0, operation, v+1)
		w.deliver(r)
		w.mark(r)
	}
	// Partitions are read side by side.
	slices.Reverse(w.records[1:])
	wantFound(t, w.verify(t, 100, 0), map[Kind]int64{Unjudged: 2})

}

// An event that went to another partition than it would now may have been deleted there.
func TestHistoryOfMovedPartitions(t *testing.T) {
	t.Parallel()
	h, operation := newHistory("events", 2), uuid.New()
	key := []byte(operation.String())
	now := h.partition(key)
	h.trimmed = true
	h.note(now, epoch, key)
	h.note(1-now, epoch.Add(time.Hour), []byte("not an operation"))
	at := epoch.Add(30 * time.Minute)
	if !h.reachesExport(operation, at) {
		t.Error("its own partition reaches back, and it has no other")
	}
	h.note(1-now, epoch.Add(2*time.Hour), key)
	if h.reachesExport(operation, at) {
		t.Error("its former partition does not reach back")
	}
	if !h.reachesExport(operation, epoch.Add(2*time.Hour)) {
		t.Error("both partitions reach back")
	}
}

func TestCompaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.compacted = true
	rows, gone := w.export(0, 3), w.export(0, 1)
	w.drop(rows[0])
	w.drop(rows[1])
	w.drop(gone[0])
	wantFound(t, w.verify(t, 100, 0), map[Kind]int64{Unjudged: 2, Lost: 1})

	w.deliver(rows[1]) // again; its first delivery is gone
	wantFound(t, w.verify(t, 100, 0), map[Kind]int64{Unjudged: 2, Lost: 1})
}

func TestExamplesAreTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.examples = 3
	for range 40 {
		w.drop(w.export(0, 2)[1])
	}
	result := w.verify(t, 7, 0)
	lost := result.Find(Lost)
	if lost.Count != 40 || len(lost.Examples) != 3 || lost.Examples[0].Row != 2 || lost.Examples[2].Row != 6 {
		t.Errorf("lost: %d, such as %v", lost.Count, lost.Examples)
	}
	if err := result.Err(); err == nil || !strings.Contains(err.Error(), "lost: 40 events are marked exported but not in the topic, such as event") {
		t.Errorf("the error is %v", err)
	}
}

func TestExampleSaysWhatIsKnown(t *testing.T) {
	t.Parallel()
	operation := uuid.MustParse("0190f3a2-7c4e-7d11-9b5a-3e6f8a2b4c1d")
	for want, e := range map[string]Example{
		"event 0190f3a2-7c4e-7d11-9b5a-3e6f8a2b4c1d:3 of tenant \"acme\" in row 7 at offset 9 of events/2: why": {
			Operation: operation, Version: 3, Scope: tenant(t, "acme"), Row: 7, Record: Place{"events", 2, 9}, Detail: "why",
		},
		"operation 0190f3a2-7c4e-7d11-9b5a-3e6f8a2b4c1d": {Operation: operation},
		"at offset 0 of events/0: no header":             {Record: Place{Topic: "events"}, Detail: "no header"},
	} {
		if got := e.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestHistoryJudgesLateEnough(t *testing.T) {
	t.Parallel()
	h := newHistory("events", 2)
	h.note(0, epoch, nil)
	h.note(0, epoch.Add(time.Hour), nil)
	for name, test := range map[string]struct {
		trimmed   bool
		partition int32
		at        time.Time
		want      bool
	}{
		"nothing was deleted":   {false, 1, epoch.Add(-time.Hour), true},
		"before the first":      {true, 0, epoch.Add(-time.Second), false},
		"marked late, perhaps":  {true, 0, epoch.Add(slack), false},
		"after the first":       {true, 0, epoch.Add(slack + 1), true},
		"no record is left":     {true, 1, epoch.Add(24 * time.Hour), false},
		"long after the second": {true, 0, epoch.Add(2 * time.Hour), true},
	} {
		h.trimmed = test.trimmed
		if got := h.reaches(test.partition, test.at); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
