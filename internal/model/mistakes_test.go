package model

import (
	"strings"
	"testing"
)

// mistake is a rule that somebody could have got wrong, and the invariant that must
// tell.
type mistake struct {
	breaks string
	layout layout
	change func(r *rules)
	world  func(m *model) // nil for two claims and three faults
}

func mistakes() map[string]mistake {
	pair, one := layout{0, 0}, layout{0}
	return map[string]mistake{
		"settlements ignore the token":                  {"I3", pair, ignoreToken, nil},
		"a late success takes the new owner's claim":    {"I3", pair, takeOver, nil},
		"renewals ignore the token":                     {"I3", pair, renewAnyway, nil},
		"claims ignore what stands before a row":        {"I2", pair, ignoreEarlier, nil},
		"a parked row lets the ones behind it go":       {"I2", pair, passParked, nil},
		"claims ignore leases":                          {"I8", one, ignoreLeases, nil},
		"the sink goes on behind a refused event":       {"I2", pair, sendOn, nil},
		"no answer counts as a failure":                 {"I8", one, failUnanswered, nil},
		"rows behind a refused one are charged as well": {"I6", pair, chargeBehind, nil},
		"marked before it is acknowledged":              {"I1", one, markUnanswered, nil},
		"verdicts are written twice":                    {"I3", pair, ignoreTokenOfFree, nil},
		"a late success goes by the id alone":           {"I1", one, markByID, func(m *model) { m.restores = true }},
		"settlements want the token with its marks":     {"I4", one, wantMarks, nil},
		"renewals leave the marks":                      {"I6", one, leaveMarks, func(m *model) { m.faults, m.refusals = 6, nil }},
		"a claim whose answer is lost adds a mark":      {"I6", one, markUnheard, func(m *model) { m.faults, m.only = 6, loses }},
		"a letter is not waited for":                    {"I1", one, burySilently, func(m *model) { m.letters = true }},
		"attempts are given back twice":                 {"I6", pair, refundTwice, nil},
		"rows that were left behind are left for good":  {"I5", one, leaveBehind, nil},
	}
}

// TestMistakesAreFound: an explorer that finds nothing in the real rules must find
// these. The log shows the way to each.
func TestMistakesAreFound(t *testing.T) {
	for name, mistake := range mistakes() {
		t.Run(name, func(t *testing.T) {
			m := &model{rules: realRules(t, mistake.layout), layout: mistake.layout, claims: 2, faults: 3, refusals: []answer{rowFault, failed}}
			if mistake.world != nil {
				mistake.world(m)
			}
			mistake.change(&m.rules)
			e, broken, trace := m.explore((&calm{model: m, ends: map[state]struct{}{}}).drains)
			if !strings.HasPrefix(broken, mistake.breaks) {
				t.Fatalf("in %d states it broke %q, want %s\n%s", len(e.nodes), broken, mistake.breaks, trace)
			}
			t.Logf("%s\n%s", broken, trace)
		})
	}
}

func ignoreToken(r *rules) {
	settle := r.settle
	r.settle = func(rows table, by owner, marks uint8, what judgement, reborn mask) table {
		for i := range rows {
			if what[i] != nothing {
				rows[i].owner, rows[i].marks = by, marks
			}
		}
		return settle(rows, by, marks, what, reborn)
	}
}

func renewAnyway(r *rules) {
	renew := r.renew
	r.renew = func(rows table, by owner, marks uint8, which mask) table {
		for i := range rows {
			if which.has(i) {
				rows[i].owner, rows[i].marks = by, marks
			}
		}
		return renew(rows, by, marks, which)
	}
}

// wantMarks guards by the token with the marks that the relay has.
func wantMarks(r *rules) {
	settle := r.settle
	r.settle = func(rows table, by owner, marks uint8, what judgement, reborn mask) table {
		before := rows
		for i := range rows {
			if rows[i].owner == by && rows[i].marks != marks {
				rows[i].owner = gone // as if it were another's
			}
		}
		after := settle(rows, by, marks, what, reborn)
		for i := range after {
			if rows[i] != before[i] {
				after[i].owner = by
			}
		}
		return after
	}
}

func leaveMarks(r *rules) {
	renew := r.renew
	r.renew = func(rows table, by owner, marks uint8, which mask) table {
		after := renew(rows, by, marks, which)
		for i := range after {
			after[i].marks = rows[i].marks
		}
		return after
	}
}

func markUnheard(r *rules) { r.unheard = func(_, is row) uint8 { return is.marks } }

// burySilently marks a row whose letter has no answer.
func burySilently(r *rules) {
	verdicts := r.verdicts
	r.verdicts = func(q question) judgement {
		if q.letter == unknown {
			q.letter = delivered
		}
		return verdicts(q)
	}
}

// ignoreTokenOfFree guards by "nobody else's" instead of by the token.
func ignoreTokenOfFree(r *rules) {
	settle := r.settle
	r.settle = func(rows table, by owner, marks uint8, what judgement, reborn mask) table {
		for i := range rows {
			if what[i] != nothing && rows[i].owner == nobody {
				rows[i].owner, rows[i].marks = by, marks
			}
		}
		return settle(rows, by, marks, what, reborn)
	}
}

func takeOver(r *rules) {
	settle := r.settle
	r.settle = func(rows table, by owner, marks uint8, what judgement, reborn mask) table {
		after := settle(rows, by, marks, what, reborn)
		for i := range after {
			if what[i] == export && after[i].exported {
				after[i].owner, after[i].leased = nobody, false
			}
		}
		return after
	}
}

// take claims rows that pass a test, whatever stands before them.
func take(among int, ok func(rows table, i int) bool) func(r *rules) {
	return func(r *rules) {
		claim := r.claim
		r.claim = func(rows table, limit, ahead int, by owner) (table, mask) {
			after, took := claim(rows, limit, ahead, by)
			for i := range among {
				if row := rows[i]; took == 0 && limit != abandoned && !row.exported && ok(rows, i) {
					row.owner, row.leased, row.marks = by, true, 0
					row.attempts++
					after = rows
					after[i], took = row, 1<<i
				}
			}
			return after, took
		}
	}
}

func ignoreEarlier(r *rules) {
	take(2, func(rows table, i int) bool { return rows[i].due == now && !rows[i].leased })(r)
}

func passParked(r *rules) {
	take(2, func(rows table, i int) bool {
		return i > 0 && rows[i-1].due == parked && rows[i].due == now && !rows[i].leased
	})(r)
}

func ignoreLeases(r *rules) {
	take(1, func(rows table, i int) bool { return rows[i].due == now })(r)
}

func sendOn(r *rules) { r.sendsOn = true }

// as has answers that are outstanding judged as something else.
func as(other answer) func(r *rules) {
	return func(r *rules) {
		verdicts := r.verdicts
		r.verdicts = func(q question) judgement {
			for i := range q.now {
				if q.rows.has(i) && q.now[i] == absent {
					q.now[i] = other
				}
			}
			return verdicts(q)
		}
	}
}

func failUnanswered(r *rules) { as(failed)(r); r.eager = true }
func markUnanswered(r *rules) { as(delivered)(r); r.eager = true }

// replace changes verdicts.
func replace(r *rules, change func(v verdict) verdict) {
	verdicts := r.verdicts
	r.verdicts = func(q question) judgement {
		what := verdicts(q)
		for i := range what {
			what[i] = change(what[i])
		}
		return what
	}
}

func chargeBehind(r *rules) {
	replace(r, func(v verdict) verdict {
		if v&refund != 0 && v != keepDue+refund {
			return park
		}
		return v
	})
}

func markByID(r *rules) {
	settle := r.settle
	r.settle = func(rows table, by owner, marks uint8, what judgement, reborn mask) table {
		for i := range rows {
			reborn &^= 1 << i
			if rows[i].reborn {
				reborn |= 1 << i
			}
		}
		return settle(rows, by, marks, what, reborn)
	}
}

func refundTwice(r *rules) {
	settle := r.settle
	r.settle = func(rows table, by owner, marks uint8, what judgement, reborn mask) table {
		after := settle(rows, by, marks, what, reborn)
		for i := range after {
			if what[i]&refund != 0 && rows[i].owner == by {
				after[i].attempts--
			}
		}
		return after
	}
}

func leaveBehind(r *rules) {
	claim := r.claim
	r.claim = func(rows table, limit, ahead int, by owner) (table, mask) {
		if limit == abandoned {
			return rows, 0
		}
		return claim(rows, limit, ahead, by)
	}
}
