package main

import (
	"context"
	"sync"
)

// register has the things that only one fault at a time may touch.
type register struct {
	mu     sync.Mutex
	things map[string]chan struct{} // holds a token while the thing is free
}

func newRegister() *register { return &register{things: map[string]chan struct{}{}} }

func (r *register) thing(name string) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.things[name] == nil {
		r.things[name] = make(chan struct{}, 1)
		r.things[name] <- struct{}{}
	}
	return r.things[name]
}

// take waits for all of some things, which must be sorted. It returns false, with none of them, if ctx ends first.
func (r *register) take(ctx context.Context, names []string) bool {
	for i, name := range names {
		select {
		case <-r.thing(name):
		case <-ctx.Done():
			r.give(names[:i])
			return false
		}
	}
	return true
}

func (r *register) give(names []string) {
	for _, name := range names {
		r.thing(name) <- struct{}{}
	}
}
