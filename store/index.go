package store

import (
	"context"
	"fmt"
	"sync"
	"time"

	"outboxrelay/migrations"
)

// indexLook is how often it is asked whether the supporting index is there. It may
// come or go while the relay runs.
const indexLook = 30 * time.Second

// indexWatch remembers whether the supporting index can be used.
type indexWatch struct {
	mu    sync.Mutex
	ok    bool
	until time.Time
}

// known is what was last seen; fresh is false when it is time to look again.
func (w *indexWatch) known() (ok, fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ok, time.Now().Before(w.until)
}

func (w *indexWatch) seen(ok bool, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ok, w.until = ok, until
}

// indexed is true if a claim may rely on the index. Probing without it would read the
// whole table. Callers that find nothing fresh look at the same time: waiting for each
// other, they would wait for a dead database one after the other.
func (s *Store) indexed(ctx context.Context) (bool, error) {
	if ok, fresh := s.index.known(); fresh {
		return ok, nil
	}
	ctx, cancel := s.limit(ctx)
	defer cancel()
	state, err := migrations.IndexState(ctx, s.pool, s.schema)
	if err != nil {
		return false, fmt.Errorf("look for the supporting index: %w", explain(ctx, err))
	}
	s.index.seen(state == migrations.Ready, time.Now().Add(s.timings.indexLook))
	return state == migrations.Ready, nil
}

// lookAgain makes the next claim look for the index: one failed, maybe because the
// index is gone.
func (s *Store) lookAgain() { s.index.seen(false, time.Time{}) }
