package exactmodel

import (
	"strings"
	"testing"
)

// mistakes that somebody could have made behind the ports.
type mistakes struct {
	noFence       bool // taking or fencing a slot does nothing
	early         bool // the last entry is looked up before the fence
	stable        bool // the look-up stops at the last stable offset of a partition that slots share
	listedOnly    bool // the entry's rows are marked only if its claim was listed
	marksLater    bool // a claim is marked when the next one may be committed already
	releasesAll   bool // all claims of the slot are released but the entry's, listed or not
	lazy          bool // the slot is taken with the first commit
	partial       bool // a transaction is committed although a record of it failed
	unknown       bool // a commit without an answer counts as aborted
	takesExpired  bool // claims take rows whose lease is over
	jumps         bool // claims take rows behind others of their operation
	ignoresTokens bool // settlements change rows whoever holds them
}

// mistake is one of them, and the invariant that must tell.
type mistake struct {
	name   string
	breaks string
	plant  mistakes
	world  func(m *model) // nil for two slots
}

func planted() []mistake {
	oneSlot := func(m *model) { m.same, m.done = true, 1 }
	return []mistake{
		{"no fence", "twice", mistakes{noFence: true}, nil},
		{"the last entry is looked up before the fence", "twice", mistakes{early: true}, nil},
		{"the look-up stops at the last stable offset", "twice", mistakes{stable: true}, nil},
		{"only what was listed is marked", "twice", mistakes{listedOnly: true}, oneSlot},
		{"the next claim is committed while the former is not marked", "twice", mistakes{marksLater: true}, nil},
		{"what was not listed is released", "twice", mistakes{releasesAll: true}, nil},
		{"the slot is taken with the first commit", "twice", mistakes{lazy: true}, nil},
		{"a part of a batch is committed", "lost", mistakes{partial: true}, nil},
		{"an unknown outcome counts as aborted", "twice", mistakes{unknown: true}, nil},
		{"claims that ran out are taken directly", "twice", mistakes{takesExpired: true}, nil},
		{"claims take rows behind others of their operation", "order", mistakes{jumps: true}, nil},
		{"settlements ignore the token", "twice", mistakes{ignoresTokens: true}, func(m *model) { m.late = true }},
	}
}

// TestMistakesAreFound: an explorer that finds nothing in the real protocol must find these. The
// log shows the shortest way to each.
func TestMistakesAreFound(t *testing.T) {
	for _, mistake := range planted() {
		t.Run(mistake.name, func(t *testing.T) {
			m := newModel(t)
			m.faults, m.mistakes = 1, mistake.plant
			if mistake.world != nil {
				mistake.world(m)
			}
			e, broken, trace := m.explore()
			if !strings.HasPrefix(broken, mistake.breaks+": ") {
				t.Fatalf("in %d states it broke %q, want %s\n%s", len(e.nodes), broken, mistake.breaks, trace)
			}
			t.Logf("%s, after %d states\n%s", broken, len(e.nodes), trace)
		})
	}
}
