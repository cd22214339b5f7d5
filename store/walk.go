package store

import (
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"outboxrelay/envelope"
)

const (
	// During a long pass rows come due behind it: others give them back, leases end, or a
	// transaction that wrote them commits late.
	passClaims = 16
	passTime   = 10 * time.Second

	// passShare bounds what rows of other namespaces cost: a pass that met many of them is
	// begun again when it has lasted that many times as long as it spent on them.
	passShare = 10

	// Rows are visible when their transaction commits, not at their due time. So much
	// before the present a look begins that only wants what is new.
	lateCommits = 5 * time.Second

	// A transaction that keeps others from looking at a scope may make no progress: its process stands still, or its
	// network is cut, while the server sends it what it has claimed. So long it is waited for.
	longClaim = time.Second

	openGate = "open" // see gate.sql
)

// position is a place in the order in which claims look at a scope's rows.
type position struct {
	due pgtype.Timestamptz
	id  int64
}

var beginning = position{due: pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}}

// walks remembers how far claims have come in each scope. A claim looks at a limited
// number of rows, and the next one goes on behind them: a pass. Thus rows that can't
// be claimed, however many lie in front, cost a claim no more than its limit, and the
// dead index entries that exported rows leave until vacuum are not read each time.
//
// It only narrows the candidates: which of them may be claimed is judged on all rows.
type walks struct {
	mu       sync.Mutex
	passes   map[envelope.Scope]*pass
	returned map[envelope.Scope]time.Time // when rows were last given back
	left     map[envelope.Scope]position  // before the first row known that a claim which ran out left behind
	holders  map[envelope.Scope]holder    // of claims that found another one under way
}

// holder is a transaction that claims of a scope, by the server's name for it.
type holder struct {
	name string
	seen time.Time // first
}

// pass is one that took more than one claim.
type pass struct {
	began  time.Time
	claims int
	spent  time.Duration // on rows of other namespaces
	taken  bool          // any of its claims took or moved rows
	next   position
	passed position // before the first row that stood behind one that could not be claimed; due is invalid if there was none
	ended  bool     // everything due has been looked at; next is where what can be new lies
}

func newWalks() walks {
	return walks{passes: map[envelope.Scope]*pass{}, returned: map[envelope.Scope]time.Time{}, left: map[envelope.Scope]position{}, holders: map[envelope.Scope]holder{}}
}

// start is where the next claim of a scope begins to look.
func (w *walks) start(scope envelope.Scope) position {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.passes[scope]
	if !ok {
		return beginning
	}
	lasted := time.Since(p.began)
	wanted := p.ended || p.claims >= passClaims || lasted >= passTime || w.returned[scope].After(p.began)
	if wanted && lasted >= passShare*p.spent {
		return beginning
	}
	return p.next
}

// gated is whether a claim looks only if no other one does. It is where there is much. Where there is little it costs less to
// look in vain. past is a transaction that is not waited for any more, "" if there is none.
func (w *walks) gated(scope envelope.Scope) (gated bool, past string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h, ok := w.holders[scope]; ok && time.Since(h.seen) >= longClaim {
		past = h.name
	}
	return w.passes[scope] != nil, past
}

// met remembers the transaction that a claim met. The caller holds mu.
func (w *walks) met(scope envelope.Scope, l look) {
	switch {
	case !l.gated:
	case l.gate == openGate:
		delete(w.holders, scope)
	case l.gate != w.holders[scope].name:
		w.holders[scope] = holder{name: l.gate, seen: time.Now()}
	}
}

// look is what one claim has looked at.
type look struct {
	start position
	began time.Time          // by our clock, before the claim was sent
	clock pgtype.Timestamptz // the database's, as the claim began
	more  bool               // it left due rows for the next one
	end   position           // where that one goes on
	seen  int                // rows that it looked at
	ours  int                // those of them that are of its namespace
	taken bool               // it took rows or moved some

	gated     bool     // it looked only if no other claim did, but for one of the transaction past
	past      string   // "" for none
	gate      string   // openGate, or the transaction of the other claim
	passed    position // before the first row that stands behind one that can't be claimed yet; due is invalid if there was none
	abandoned position // before the first row left behind that it saw and did not take; due is invalid if there was none
}

// refused is true for a claim that looked at nothing because another one did.
func (l *look) refused() bool { return l.gated && l.gate != openGate && l.gate != l.past }

// claimed tells how a claim ended, and says whether the next one may find more at once.
// That is also so at the end of a pass that took rows: others may have come due
// behind it.
func (w *walks) claimed(scope envelope.Scope, l look) (more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.met(scope, l); l.refused() {
		return false
	}
	if l.start == beginning {
		delete(w.passes, scope)
	}
	p, ok := w.passes[scope]
	switch {
	case !ok && !l.more:
		return false // one claim saw all: it costs nothing to begin again
	case !ok:
		p = &pass{began: l.began}
		w.passes[scope] = p
	}
	p.claims++
	p.ended = !l.more
	p.taken = p.taken || l.taken
	if l.seen > 0 {
		p.spent += time.Since(l.began) * time.Duration(l.seen-l.ours) / time.Duration(l.seen)
	}
	if l.passed.due.Valid && !p.passed.due.Valid {
		p.passed = l.passed
	}
	if p.ended {
		p.next, p.passed = p.passed, position{}
		if !p.next.due.Valid {
			p.next = position{due: pgtype.Timestamptz{Time: l.clock.Time.Add(-lateCommits), Valid: true}}
		}
		more, p.taken = p.taken, false
		return more
	}
	p.next = l.end
	return true
}

// abandonedAt is where a claim finds a row that was left behind by a claim which ran
// out, if one is known of.
func (w *walks) abandonedAt(scope envelope.Scope) (at position, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, known = w.left[scope]
	return at, known
}

// abandoned takes what a claim saw of such rows, and tells whether the next claim after
// them may find some. One that was after them, took all that it saw, and did not see
// everything, may have others behind it.
func (w *walks) abandoned(scope envelope.Scope, l look, after bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case l.abandoned.due.Valid:
		w.left[scope] = l.abandoned
	case after && l.taken && l.more:
		w.left[scope] = l.end
	case after:
		delete(w.left, scope)
	}
	_, known := w.left[scope]
	return known
}

// forget makes a new pass begin soon: rows were given back.
func (w *walks) forget(scope envelope.Scope) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.returned[scope] = time.Now()
}
