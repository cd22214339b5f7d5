package exactmodel

// looksEarly looks the last entry up when it has not been done yet; true if so.
func (m *model) looksEarly(n *moves, p int, is step) bool {
	if n.from.thread(p, is.help).early.token != 0 {
		return false
	}
	is.what = "and looks up the last entry before"
	n.add(is, func(w *world) string {
		w.thread(p, is.help).early = w.slots[is.call.slot].last
		return ""
	})
	return true
}

// listed is true if a thread has claimed or listed what has a token.
func (m *model) listed(t thread, which token) (is bool) {
	t.heard.rename(func(heard token) token {
		is = is || heard == which
		return heard
	})
	return is
}

// settles writes verdicts.
func (m *model) settles(w *world, p int, help bool, c call) answer {
	if m.marksLater && !help && !c.taking && w.late.kind == none {
		w.late = afterwards{settle, c.token, c.marks, c.freed}
		return one(0, c.marks|c.freed)
	}
	var wrote mask
	if m.ignoresTokens {
		for r := range w.rows {
			if (c.marks | c.freed).has(r) && !w.rows[r].exported && w.rows[r].owner != 0 {
				w.rows[r].owner, w.rows[r].expired = c.token, false
			}
		}
	}
	w.rows, wrote = m.settle(w.rows, c.token, c.marks, c.freed)
	switch {
	case wrote == 0 || !help && !c.taking:
	case c.marks != 0:
		m.marked++
	default:
		m.released++
	}
	return one(0, wrote)
}

// offered is the table as a claim sees it.
func (m *model) offered(rows table) table {
	for r := range rows {
		if m.takesExpired && rows[r].expired {
			rows[r].owner, rows[r].expired = 0, false
		}
	}
	return rows
}

// jump takes the second row of an operation while the first is unexported.
func (w *world) jump(t token) mask {
	if row := &w.rows[1]; row.owner == 0 && !row.exported {
		row.owner = t
		return 2
	}
	return 0
}
