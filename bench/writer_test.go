package main

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestTransactionsCountThatLieWithinTheTime(t *testing.T) {
	t.Parallel()
	from := time.Now()
	to := from.Add(time.Second)
	w := &writer{begins: map[string]time.Time{}, commits: map[string]time.Time{}}
	for _, lies := range []struct{ begins, took time.Duration }{
		{-time.Millisecond, 2 * time.Millisecond}, // begins too early
		{0, 3 * time.Millisecond},
		{500 * time.Millisecond, 500 * time.Millisecond},
		{999 * time.Millisecond, 2 * time.Millisecond}, // ends too late
	} {
		id := uuid.NewString()
		w.begins[id], w.commits[id] = from.Add(lies.begins), from.Add(lies.begins+lies.took)
	}
	got := w.took(from, to)
	slices.Sort(got)
	if want := []time.Duration{3 * time.Millisecond, 500 * time.Millisecond}; !slices.Equal(got, want) {
		t.Errorf("took %v, want %v", got, want)
	}
}

func TestCrowdHasTheUsualRowsOrFewMore(t *testing.T) {
	t.Parallel()
	for _, s := range []sizes{full, small} {
		if rows := s.crowd * s.ofCrowd() * versions; rows < s.backlog() || rows >= s.backlog()+s.crowd*versions {
			t.Errorf("%d rows of %d tenants, for a backlog of %d", rows, s.crowd, s.backlog())
		}
	}
}
