package exactmodel

import "testing"

// What the explorer leaves out of what a worker has heard makes no difference to what it does: each
// question is asked again with other words, and with a longer past.
func TestWhatMakesNoDifference(t *testing.T) {
	m := newModel(t)
	m.faults, m.done, m.same = 1, rowA2|rowB1, true
	m.check(t)
	claimed, start := one(newToken(0, 14), all), one(newToken(0, initial), 0)
	bad := answer{outcome: failed}
	pasts := map[bool][][]answer{
		true: {
			{claimed, {}, one(0, all)},                   // a clean success
			{bad, {}, {}, start},                         // a claim that failed
			{claimed, bad, {}, start, one(0, all)},       // a commit that failed
			{claimed, {}, bad, {}, claimed, one(0, all)}, // a mark that failed
		},
		false: {
			{bad},
			{{}, bad},
			{{}, {}, {}, {}, bad}, // the first entry could not be committed
		},
	}
	asked := 0
	for q, want := range m.asked {
		if q.helper {
			continue
		}
		for _, past := range append(pasts[q.ready], nil) {
			r := question{ready: q.ready}
			for _, a := range past {
				r.heard = r.heard.with(a)
			}
			r.heard = m.retell(q, r)
			got := converse(t, r)
			got.limit = want.limit // smaller after a failure; the explorer has it claim one row, too
			if got != want && !(want.kind == claim && want.token != 0) {
				t.Errorf("%s\nwhat comes next is %+v; %s\nit is %+v", q, want, r, got)
			}
			asked++
		}
	}
	if asked == 0 {
		t.Error("there was no question")
	}
	t.Logf("%d questions", asked)
}

// retell adds to a past what a worker hears, in other words.
func (m *model) retell(q, past question) history {
	var before history
	stale := false
	for _, a := range q.heard.answers() {
		to := m.ask(0, false, thread{ready: q.ready, heard: before})
		before = before.with(a)
		a.stale, stale = a.stale || stale, false
		switch {
		case to.kind == look:
			for i := range a.held {
				a.held[i].expired = a.held[i].token != 0
			}
			if a.held[2].token == 0 {
				a.held[2] = held{token: newToken(1, 1), rows: all, expired: true}
			}
		case to.kind == settle:
			a.held[0].rows = 0
		case to.kind == commit && a.outcome == failed:
			a.outcome = fenced
		case to.kind == claim && to.token != 0 && converse(m.oracle.T, past).kind != claim:
			stale = a.stale // while nothing gets through to a topic, it does not claim again
			continue
		}
		past.heard = past.heard.with(a)
	}
	return past.heard
}
