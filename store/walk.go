package store

import (
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"outboxrelay/envelope"
)

const (
	fullWalkClaims = 16
	fullWalkEvery  = 10 * time.Second
)

// walks remembers, for each scope, where the next claim begins to look. Exported rows
// leave dead index entries at the front of the pending range until vacuum, and a
// drain that begins before them each time reads all of them each time. It only
// narrows the candidates: which of them may be claimed is judged on all rows.
type walks struct {
	mu     sync.Mutex
	scopes map[envelope.Scope]walk
}

type walk struct {
	from   pgtype.Timestamptz
	claims int // since the last full walk
	full   time.Time
}

var wholeRange = pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}

func newWalks() walks { return walks{scopes: map[envelope.Scope]walk{}} }

// start is where the next claim of a scope begins to look.
func (w *walks) start(scope envelope.Scope) pgtype.Timestamptz {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.scopes[scope]
	if !ok || at.claims >= fullWalkClaims || time.Since(at.full) > fullWalkEvery {
		return wholeRange
	}
	return at.from
}

// claimed tells how a claim that began at start ended. While claims come back full the
// next one goes on where this one began; after any other the whole range is looked at.
// Only a claim that looked at the whole range puts off the next one that does: others
// may have been on their way already when that was due, or when rows were given back.
func (w *walks) claimed(scope envelope.Scope, start pgtype.Timestamptz, full bool, first pgtype.Timestamptz) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !full || !first.Valid {
		delete(w.scopes, scope)
		return
	}
	at := w.scopes[scope]
	if start == wholeRange {
		at = walk{full: time.Now()}
	}
	at.from = first
	at.claims++
	w.scopes[scope] = at
}

// forget makes the next claim look at the whole range: rows were given back.
func (w *walks) forget(scope envelope.Scope) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.scopes, scope)
}
