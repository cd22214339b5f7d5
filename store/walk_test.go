package store

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"outboxrelay/envelope"
)

// The database's clock as the tests' claims begin.
var noon = pgtype.Timestamptz{Time: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), Valid: true}

// at is the place behind the row with that id, due as many minutes after midnight.
func at(id int64) position {
	return position{due: pgtype.Timestamptz{Time: time.Date(2026, 1, 1, 0, int(id), 0, 0, time.UTC), Valid: true}, id: id}
}

// recent is where a look begins that only wants what is new.
var recent = position{due: pgtype.Timestamptz{Time: noon.Time.Add(-lateCommits), Valid: true}}

// claim makes a claim that takes that long, and tells where it began. It looks as far as
// end, or to the last due row if that is nil.
func (w *walks) claim(scope envelope.Scope, end *position, taken bool, lasts time.Duration) (start position, more bool) {
	l := look{start: w.start(scope), began: time.Now(), clock: noon, more: end != nil}
	switch {
	case taken:
		l.seen, l.ours, l.taken = 1, 1, true
	case end != nil:
		l.seen = 1 // of another namespace
	}
	if end != nil {
		l.end = *end
	}
	time.Sleep(lasts)
	return l.start, w.claimed(scope, l)
}

// steps runs claims of one scope in virtual time, one after the other.
func steps(t *testing.T, do func(w *walks, claim func(what string, want position, end *position, taken, wantMore bool))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWalks()
		do(&w, func(what string, want position, end *position, taken, wantMore bool) {
			t.Helper()
			start, more := w.claim(envelope.NonTenant(), end, taken, 10*time.Millisecond)
			if start != want || more != wantMore {
				t.Errorf("%s: the claim begins behind %v and says more %t, want %v and %t", what, start, more, want, wantMore)
			}
		})
	})
}

func TestPassGoesOnBehindWhatWasLookedAt(t *testing.T) {
	t.Parallel()
	steps(t, func(_ *walks, claim func(string, position, *position, bool, bool)) {
		one, two := at(1), at(2)
		claim("first", beginning, &one, true, true)
		claim("second", one, &two, true, true)
		claim("last", two, nil, false, true) // others may have come due behind it
		claim("of the next pass", beginning, nil, false, false)
		claim("of the one after that", beginning, nil, true, false)
	})
}

func TestPassBeginsAgainDuringADrain(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(w *walks){
		"after rows were given back": func(w *walks) { w.forget(envelope.NonTenant()) },
		"after some time":            func(*walks) { time.Sleep(passTime) },
		"after many claims": func(w *walks) {
			for i := range int64(passClaims - 1) {
				end := at(10 + i)
				w.claim(envelope.NonTenant(), &end, true, time.Millisecond)
			}
		},
	} {
		steps(t, func(w *walks, claim func(string, position, *position, bool, bool)) {
			one := at(1)
			claim(name+": first", beginning, &one, true, true)
			do(w)
			claim(name+": next", beginning, nil, false, false)
		})
	}
}

// Rows that come back while the first claim of a pass is under way are not forgotten.
func TestRowsGivenBackDuringAClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, scope, one := newWalks(), envelope.NonTenant(), at(1)
		l := look{start: w.start(scope), began: time.Now(), clock: noon, more: true, seen: 1, ours: 1, taken: true, end: one}
		time.Sleep(time.Millisecond)
		w.forget(scope)
		w.claimed(scope, l)
		if got := w.start(scope); got != beginning {
			t.Errorf("the next claim begins behind %v, want all to be looked at again", got)
		}
	})
}

// What can't be claimed is looked at whole for a tenth of the time at most. In between
// only what is new is looked at.
func TestRowsInFrontCostABoundedShare(t *testing.T) {
	t.Parallel()
	steps(t, func(w *walks, claim func(string, position, *position, bool, bool)) {
		one, two := at(1), at(2)
		claim("in front", beginning, &one, false, true)
		w.forget(envelope.NonTenant())
		claim("in front", one, &two, false, true) // 20 ms spent
		claim("to the end", two, nil, true, true)
		claim("what is new", recent, nil, true, true)
		claim("what is new", recent, nil, false, false)
		time.Sleep(10 * 20 * time.Millisecond)
		claim("the next pass", beginning, &one, false, true)
	})
}

// A drain behind rows that can't be claimed gets on.
func TestPassBehindRowsInFrontIsNotCutShort(t *testing.T) {
	t.Parallel()
	steps(t, func(w *walks, claim func(string, position, *position, bool, bool)) {
		start := beginning
		for i := range int64(10 * passClaims) {
			end := at(i + 1)
			claim("in front", start, &end, false, true)
			start = end
		}
		one := at(1000)
		claim("behind them", start, &one, true, true)
		claim("and on", one, nil, true, true)
	})
}

func TestPassesAreApart(t *testing.T) {
	t.Parallel()
	one, err := envelope.Tenant("one")
	if err != nil {
		t.Fatal(err)
	}
	w, end := newWalks(), at(1)
	w.claim(one, &end, true, 0)
	if got := w.start(envelope.NonTenant()); got != beginning {
		t.Errorf("another scope's claim begins behind %v", got)
	}
}

// One claim at a time looks where there is much. A transaction that makes no progress keeps others away for a second, and what
// it did says nothing of the next one.
func TestClaimsAreKeptAwayForASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, scope, end := newWalks(), envelope.NonTenant(), at(1)
		claim := func(what string, gated bool, past, gate string, refused bool) {
			t.Helper()
			l := look{start: w.start(scope), began: time.Now(), clock: noon, more: true, seen: 5, ours: 5, taken: true, end: end, gate: gate}
			if l.gated, l.past = w.gated(scope); l.gated != gated || l.past != past {
				t.Errorf("%s: gated is %t and past %q, want %t and %q", what, l.gated, l.past, gated, past)
			}
			if more := w.claimed(scope, l); l.refused() != refused || more == refused {
				t.Errorf("%s: refused is %t, and that there may be more %t", what, l.refused(), more)
			}
		}
		claim("with nothing known", false, "", "", false)
		claim("where there is much", true, "", openGate, false)
		claim("another one looks", true, "", "4/7", true)
		time.Sleep(longClaim - 1)
		claim("still", true, "", "4/7", true)
		time.Sleep(time.Nanosecond)
		claim("for too long", true, "4/7", "4/7", false)
		claim("and on", true, "4/7", "4/7", false)
		claim("it is gone, and there is another", true, "4/7", "4/8", true)
		time.Sleep(longClaim - 1)
		claim("which ends in time", true, "", "4/9", true)
		time.Sleep(time.Nanosecond)
		claim("as the next one does", true, "", openGate, false)
		time.Sleep(longClaim)
		claim("nothing is known of any", true, "", "4/9", true)
	})
}
