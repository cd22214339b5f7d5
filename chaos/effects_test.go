package main

import (
	"slices"
	"testing"
	"time"
)

// named gives the number of a kind.
func named(t *testing.T, name string) int {
	t.Helper()
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		t.Fatalf("there is no kind %q", name)
	}
	return i
}

func TestDuplicatesArePutDownToFaults(t *testing.T) {
	t.Parallel()
	kill, freeze := named(t, "relay killed, started at once"), named(t, "relay frozen beyond its lease")
	hole := named(t, "database connections blackholed")
	fault := func(kind int, begun, ended time.Duration) happened {
		return happened{fault: fault{kind: kind}, begun: dawn.Add(begun), ended: dawn.Add(ended)}
	}
	const s = time.Second
	d := duplicate{first: dawn, again: dawn.Add(12 * s)}
	cases := map[string]struct {
		faults []happened
		want   map[int]blame
		none   int
	}{
		"killed before the mark":          {[]happened{fault(kill, s, s)}, map[int]blame{kill: {alone: 1}}, 0},
		"killed long before":              {[]happened{fault(kill, -30*s, -30*s)}, nil, 1},
		"killed after the second":         {[]happened{fault(kill, 13*s, 13*s)}, nil, 1},
		"one frozen before sent nothing":  {[]happened{fault(freeze, -5*s, 10*s), fault(kill, s, s)}, map[int]blame{kill: {alone: 1}}, 0},
		"frozen after sending":            {[]happened{fault(freeze, s, 14*s)}, map[int]blame{freeze: {alone: 1}}, 0},
		"the database was away already":   {[]happened{fault(hole, -5*s, 3*s)}, map[int]blame{hole: {alone: 1}}, 0},
		"two causes":                      {[]happened{fault(hole, -5*s, 3*s), fault(kill, s, s)}, map[int]blame{hole: {among: 1}, kill: {among: 1}}, 0},
		"the nearer one":                  {[]happened{fault(kill, s, s), fault(hole, 3*s, 4*s)}, map[int]blame{kill: {alone: 1}}, 0},
		"not at once":                     {[]happened{fault(hole, 4*s, 5*s)}, map[int]blame{hole: {alone: 1}}, 0},
		"only within a lease before":      {[]happened{fault(freeze, -9*s, 9*s)}, map[int]blame{freeze: {alone: 1}}, 0},
		"two of the same kind count once": {[]happened{fault(kill, s, s), fault(kill, s/2, s/2)}, map[int]blame{kill: {alone: 1}}, 0},
	}
	for name, c := range cases {
		blames, none := attribute([]duplicate{d}, c.faults)
		if none != c.none {
			t.Errorf("%s: %d unexplained, want %d", name, none, c.none)
		}
		for kind, got := range blames {
			if got != c.want[kind] {
				t.Errorf("%s: %s: %+v, want %+v", name, kinds[kind].name, got, c.want[kind])
			}
		}
	}
}

func TestRecovery(t *testing.T) {
	t.Parallel()
	const s = time.Second
	end := dawn
	at := func(scope string, created, exported time.Duration) row {
		return row{scope: scope, created: dawn.Add(created), exported: dawn.Add(exported), isExported: true}
	}
	cases := map[string]struct {
		rows []row
		want recovery
	}{
		"nothing waited":          {[]row{at("a", -2*s, -s), at("a", s, 2*s)}, recovery{}},
		"one scope":               {[]row{at("a", -2*s, 4*s), at("a", -s, 6*s)}, recovery{4 * s, 6 * s}},
		"a newer one comes first": {[]row{at("a", -2*s, 9*s), at("a", s, 2*s)}, recovery{2 * s, 9 * s}},
		"the slowest scope":       {[]row{at("a", -2*s, s), at("b", -2*s, 5*s), at("c", s, 8*s)}, recovery{5 * s, 5 * s}},
		"never exported":          {[]row{{scope: "a", created: dawn.Add(-s)}}, recovery{}},
	}
	for name, c := range cases {
		if got := recovered(end, c.rows); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
