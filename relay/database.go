package relay

import (
	"context"
	"sync"
	"time"
)

const (
	firstDatabaseWait   = 250 * time.Millisecond
	longestDatabaseWait = 10 * time.Second
	// Calls that fail say nothing of the database, but only of what they were about, if so few of
	// them failed since one worked, and that was not longer ago.
	fewFailures = 3
	lastWorked  = time.Second
	// Refusals say something of the database when nothing else has come for so long.
	refusing = 10 * time.Second
)

// gate keeps a relay from hammering a database that fails. While it fails, one
// caller at a time gets through, after growing waits; the first success opens the
// gate for all.
type gate struct {
	jitter func(time.Duration) time.Duration

	mu       sync.Mutex
	err      error     // of the last call; nil while the gate is open
	failures int       // in a row
	lately   int       // since a call worked
	refusal  error     // of the last call that it refused; nil after a claim or settlement that worked
	lastDone time.Time // when one of those last did
	notUntil time.Time
	opened   chan struct{} // closed when the gate opens; replaced when it closes
	probe    chan struct{} // holds the place of the one caller that may try
	lastOK   time.Time
}

func newGate(jitter func(time.Duration) time.Duration) *gate {
	opened := make(chan struct{})
	close(opened)
	return &gate{jitter: jitter, opened: opened, probe: make(chan struct{}, 1)}
}

// enter waits until a call may be tried, and gives a function to be called after it;
// ok is false when ctx ended first.
func (g *gate) enter(ctx context.Context) (leave func(), ok bool) {
	opened, _ := g.state()
	select {
	case <-ctx.Done():
		return nil, false
	case <-opened:
		return func() {}, ctx.Err() == nil
	case g.probe <- struct{}{}:
	}
	leave = func() { <-g.probe }
	// What the former holder of the place found out counts.
	opened, wait := g.state()
	if !sleep(ctx, wait, opened) {
		leave()
		return nil, false
	}
	return leave, true
}

// state is a channel that is closed while the gate is open, and how long until a call
// may be tried if it isn't.
func (g *gate) state() (opened <-chan struct{}, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened, time.Until(g.notUntil)
}

// worked tells that the database did what was asked of it.
func (g *gate) worked() {
	g.answered()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lastDone, g.refusal = time.Now(), nil
}

// answered tells that the database answered a look at what is due, which says little of its
// readiness for more.
func (g *gate) answered() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lastOK, g.lately = time.Now(), 0
	if g.err != nil {
		g.err, g.failures, g.notUntil = nil, 0, time.Time{}
		close(g.opened)
	}
}

// failed tells that a call failed. Calls that fail together make the wait grow once, and one
// that fails while others work, none.
func (g *gate) failed(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lately++; g.err == nil && g.lately <= fewFailures && time.Since(g.lastOK) < lastWorked {
		return
	}
	if g.err == nil {
		g.opened = make(chan struct{})
	}
	g.err = err
	if now := time.Now(); !now.Before(g.notUntil) {
		g.failures++
		g.notUntil = now.Add(g.jitter(growing(firstDatabaseWait, longestDatabaseWait, g.failures)))
	}
}

// blame tells that a call ended with an error.
func (g *gate) blame(err error) {
	if ClassOf(err) == RowFault {
		g.refused(err)
	} else {
		g.failed(err)
	}
}

// refused tells that the database answered a call and refused it, which says nothing of others.
func (g *gate) refused(err error) {
	g.mu.Lock()
	g.refusal = err
	all := time.Since(g.lastOK) > refusing
	g.mu.Unlock()
	if all {
		g.failed(err)
	}
}

// health is when a call last worked, and the error if none does now.
func (g *gate) health() (lastOK time.Time, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil && time.Since(g.lastDone) > quickClaim {
		return g.lastOK, g.refusal
	}
	return g.lastOK, g.err
}
