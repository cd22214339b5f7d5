package main

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
)

func TestRegisterGivesAThingToOneAtATime(t *testing.T) {
	t.Parallel()
	r := newRegister()
	things := [][]string{{"a"}, {"a", "b"}, {"b", "c"}, {"a", "b", "c"}}
	holders := map[string]*atomic.Int32{"a": {}, "b": {}, "c": {}}
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			names := things[i%len(things)]
			if !r.take(t.Context(), names) {
				t.Error("take gave up though nothing ended it")
				return
			}
			for _, name := range names {
				if n := holders[name].Add(1); n != 1 {
					t.Errorf("%d have %s", n, name)
				}
			}
			for _, name := range names {
				holders[name].Add(-1)
			}
			r.give(names)
		})
	}
	group.Wait()
}

func TestRegisterGivesBackWhatItTookInVain(t *testing.T) {
	t.Parallel()
	r := newRegister()
	if !r.take(t.Context(), []string{"b"}) {
		t.Fatal("b is free")
	}
	ended, end := context.WithCancel(t.Context())
	came := make(chan bool)
	go func() { came <- r.take(ended, []string{"a", "b"}) }()
	end()
	if <-came {
		t.Error("b was taken twice")
	}
	if !r.take(t.Context(), []string{"a"}) {
		t.Error("a isn't free again")
	}
}
