package store

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"outboxrelay/envelope"
)

// at is an instant that claims may begin at.
func at(minute int) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC), Valid: true}
}

// full is a full claim whose first row was due at the given minute.
func (w *walks) fullClaim(scope envelope.Scope, minute int) (start pgtype.Timestamptz) {
	start = w.start(scope)
	w.claimed(scope, start, true, at(minute))
	return start
}

func TestWalkGoesOnWhileClaimsAreFull(t *testing.T) {
	t.Parallel()
	w, scope := newWalks(), envelope.NonTenant()
	for round := range 3 {
		for i := range fullWalkClaims {
			want := wholeRange
			if i > 0 {
				want = at(i - 1)
			}
			if got := w.fullClaim(scope, i); got != want {
				t.Fatalf("round %d: claim %d begins at %v, want %v", round, i, got, want)
			}
		}
	}
}

func TestWalkBeginsAgain(t *testing.T) {
	t.Parallel()
	scope := envelope.NonTenant()
	for name, do := range map[string]func(*walks){
		"after a claim that was not full": func(w *walks) { w.claimed(scope, w.start(scope), false, at(5)) },
		"after rows were given back":      func(w *walks) { w.forget(scope) },
		"after rows were given back during a claim": func(w *walks) {
			start := w.start(scope)
			w.forget(scope)
			w.claimed(scope, start, true, at(5))
		},
	} {
		w := newWalks()
		w.fullClaim(scope, 1)
		if got := w.start(scope); got != at(1) {
			t.Fatalf("%s: a claim begins at %v, want %v", name, got, at(1))
		}
		do(&w)
		if got := w.start(scope); got != wholeRange {
			t.Errorf("%s: a claim begins at %v, want the whole range", name, got)
		}
	}
}

func TestWalkBeginsAgainInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, scope := newWalks(), envelope.NonTenant()
		w.fullClaim(scope, 1)
		time.Sleep(fullWalkEvery - time.Second)
		slow := w.start(scope)
		if slow != at(1) {
			t.Fatalf("a claim begins at %v, want %v", slow, at(1))
		}
		time.Sleep(2 * time.Second)
		w.claimed(scope, slow, true, at(2)) // began in time, so it is no walk over everything
		if got := w.start(scope); got != wholeRange {
			t.Errorf("a claim begins at %v, want the whole range", got)
		}
	})
}

// Claims that are on their way when the next full walk is due do not take its place.
func TestWalkOfSeveralClaimants(t *testing.T) {
	t.Parallel()
	w, scope := newWalks(), envelope.NonTenant()
	for i := range fullWalkClaims - 1 {
		w.fullClaim(scope, i)
	}
	first, second := w.start(scope), w.start(scope)
	w.claimed(scope, first, true, at(20))
	w.claimed(scope, second, true, at(21))
	if got := w.start(scope); got != wholeRange {
		t.Errorf("a claim begins at %v, want the whole range", got)
	}
}

func TestWalksAreApart(t *testing.T) {
	t.Parallel()
	one, err := envelope.Tenant("one")
	if err != nil {
		t.Fatal(err)
	}
	w := newWalks()
	w.fullClaim(one, 1)
	if got := w.start(envelope.NonTenant()); got != wholeRange {
		t.Errorf("another scope's claim begins at %v, want the whole range", got)
	}
}
