package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

var epoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

func payload(t transition) string { return fmt.Sprintf(`{"state_version": %d}`, t.version) }

// wellDone is an outcome without problems: two events of oak, the second came twice, and one of ash.
func wellDone(t *testing.T) outcome {
	t.Helper()
	two := transition{one.tenant, one.operation, 2}
	other := transition{notRelayed, uuid.MustParse("6b0c5d3e-0000-4000-8000-000000000002"), 1}
	row := func(of transition, attempts int) outboxRow {
		return outboxRow{
			Operation: of.operation, TenantScope: of.tenant, Version: of.version, Payload: payload(of),
			Exported: attempts > 0, Attempts: attempts,
		}
	}
	return outcome{
		written:    []transition{one, two, other},
		topic:      []*delivery{record(t, one), record(t, two), record(t, two)},
		table:      []outboxRow{row(one, 1), row(two, 2), row(other, 0)},
		operations: map[uuid.UUID]int64{one.operation: 2, other.operation: 1},
		notRelayed: notRelayed,
		repeated:   two,
	}
}

func TestNoProblems(t *testing.T) {
	t.Parallel()
	if problems := wellDone(t).problems(); len(problems) > 0 {
		t.Errorf("problems where there are none: %q", problems)
	}
	if n, want := wellDone(t).count("oak"), (counts{written: 2, delivered: 3, twice: 1, exported: 2, attempts: 3}); n != want {
		t.Errorf("counts %+v, want %+v", n, want)
	}
}

func TestProblemsAreFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil func(*outcome)
		want  string
	}{
		"lost":          {func(o *outcome) { o.topic = o.topic[1:] }, "v1 of tenant oak is not in the topic"},
		"out of order":  {func(o *outcome) { o.topic[0], o.topic[1] = o.topic[1], o.topic[0] }, "v2 of tenant oak arrived right after version 0"},
		"no event":      {func(o *outcome) { o.topic[0].malformed = errors.New("no header") }, "offset 0: the record is no event: no header"},
		"stranger":      {func(o *outcome) { o.written = o.written[1:] }, "nobody wrote 6b0c5d v1"},
		"not relayed":   {func(o *outcome) { o.notRelayed = "oak" }, "an event of tenant oak, which is not relayed"},
		"other value":   {func(o *outcome) { o.table[0].Payload = `{}` }, "the value of 6b0c5d v1 is not the row's payload"},
		"other bytes":   {func(o *outcome) { o.topic[2].record.Value = []byte("{}") }, "v2 of tenant oak came again, and not the same"},
		"not twice":     {func(o *outcome) { o.topic = o.topic[:2] }, "v2 of tenant oak came 1 times"},
		"another twice": {func(o *outcome) { o.topic = append(o.topic, o.topic[0]) }, "v1 of tenant oak came 2 times"},
		"not marked":    {func(o *outcome) { o.table[1].Exported = false }, "v2 of tenant oak: exported false"},
		"claim left":    {func(o *outcome) { o.table[1].Claimed = true }, "v2 of tenant oak: exported true, claimed true"},
		"error left":    {func(o *outcome) { o.table[1].LastError = "why" }, `last_error "why"`},
		"touched":       {func(o *outcome) { o.table[2].Attempts = 1 }, "v1 of tenant ash: 1 attempts"},
		"row gone":      {func(o *outcome) { o.table = o.table[:2] }, "the outbox has 2 rows, 3 were written"},
		"operation":     {func(o *outcome) { o.operations[one.operation] = 9 }, "has version 9, the application left 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := wellDone(t)
			test.spoil(&o)
			if all := strings.Join(o.problems(), "\n"); !strings.Contains(all, test.want) {
				t.Errorf("problems:\n%s\nwant one with %q", all, test.want)
			}
		})
	}
}
