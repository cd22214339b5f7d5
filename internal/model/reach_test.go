package model

import "testing"

// TestExplorerComesEverywhere: an invariant that holds because the explorer never comes
// to where it matters is worth nothing.
func TestExplorerComesEverywhere(t *testing.T) {
	usual := model{layout: layout{0, 0}, claims: 2, faults: 3, refusals: []answer{rowFault, failed}}
	deadly := model{layout: layout{0}, claims: 1, faults: 6, only: kills, strict: true}
	buries := model{layout: layout{0, 0}, claims: 2, faults: 2, refusals: []answer{rowFault}, letters: true}
	lossy := model{layout: layout{0}, claims: 1, faults: 6, only: loses}
	for name, place := range map[string]struct {
		model model
		is    func(s state) bool
	}{
		"a late success under another's claim": {usual, func(s state) bool {
			return s.rows[0].exported && s.rows[0].owner >= first && s.rows[0].leased
		}},
		"late answers are followed": {usual, func(s state) bool {
			return s.any(func(c claim) bool { return c.stage == late })
		}},
		"a settlement is tried again": {usual, func(s state) bool {
			return s.any(func(c claim) bool { return c.rows[0].note == settling })
		}},
		"two relays wait for the answer to one event": {usual, func(s state) bool {
			return s.claims[0].rows[0].answer.open() && s.claims[1].rows[0].answer.open()
		}},
		"a forgotten record of a row that another claim sends": {usual, func(s state) bool {
			return s.rows[0].loose && s.any(func(c claim) bool { return c.rows[0].answer == flying })
		}},
		"a row behind a parked one waits for a day": {usual, func(s state) bool {
			return s.rows[0].due == parked && s.rows[1].due == aDay
		}},
		"a lease is renewed that was over": {usual, func(s state) bool {
			return s.any(func(c claim) bool {
				return c.leased && c.rows[0].mine != c.rows[1].mine && c.rows[0].answer.open() && c.rows[1].answer.open()
			})
		}},
		"a row whose letter has arrived, and that is sent again": {buries, func(s state) bool {
			return s.rows[0].buried && s.any(func(c claim) bool { return c.rows[0].answer == flying })
		}},
		"a row behind one that was buried": {buries, func(s state) bool {
			return s.rows[0].buried && !s.rows[0].arrived && s.rows[1].exported
		}},
		"a row has a mark that its relay does not know of": {lossy, func(s state) bool {
			return s.any(func(c claim) bool { return c.marks > 0 && c.rows[0].answer == failed })
		}},
		"rows that were left behind are claimed together": {usual, func(s state) bool {
			return s.any(func(c claim) bool { return c.stage == held && c.marks > 0 && c.mask() == 3 })
		}},
		"a row that ended relay after relay is parked": {deadly, func(s state) bool {
			return s.rows[0].due == parked
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := place.model
			m.rules = realRules(t, m.layout)
			e, broken, trace := m.explore(func(s state) (string, string) {
				if place.is(s) {
					return "reached", ""
				}
				return "", ""
			})
			if broken != "reached" {
				t.Errorf("never in %d states (%s)\n%s", len(e.nodes), broken, trace)
			}
		})
	}
}

func (s *state) any(is func(claim) bool) bool {
	for _, c := range s.claims {
		if is(c) {
			return true
		}
	}
	return false
}
