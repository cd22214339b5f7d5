package main

import "time"

const (
	// soon is within how long a delivery is marked when all goes well: a relay waits for a second at most for the rest of
	// its claim. settling is within how long if the relay itself can still do it: the delivery time-out and 3 s.
	soon     = 1500 * time.Millisecond
	settling = deliveryTimeout + 3*time.Second
	// slack is how exact the times of records and faults are.
	slack = 200 * time.Millisecond
)

// blame is how many duplicates may be due to a kind of fault.
type blame struct {
	alone int // no other kind may be the cause
	among int // others may be as well
}

// attribute gives for each kind the duplicates that may be due to it. unexplained is how many are due to no fault.
func attribute(duplicates []duplicate, faults []happened) (blames []blame, unexplained int) {
	blames = make([]blame, len(kinds))
	for _, d := range duplicates {
		causes := causes(d, faults)
		for kind := range causes {
			if len(causes) == 1 {
				blames[kind].alone++
			} else {
				blames[kind].among++
			}
		}
		if len(causes) == 0 {
			unexplained++
		}
	}
	return blames, unexplained
}

// causes are the kinds that can have kept the first delivery from being marked: those that struck while its claim should
// have been settled. If there are none, all kinds count that went on from a lease before the second delivery to that.
func causes(d duplicate, faults []happened) map[int]bool {
	for _, window := range []time.Duration{soon, settling} {
		struck := which(faults, func(f happened) bool { return f.strikes(d.first.Add(-slack), d.first.Add(window)) })
		if len(struck) > 0 {
			return struck
		}
	}
	return which(faults, func(f happened) bool { return f.overlaps(d.again.Add(-lease), d.again) })
}

// which gives the kinds of some faults.
func which(faults []happened, fits func(happened) bool) map[int]bool {
	found := map[int]bool{}
	for _, f := range faults {
		if fits(f) {
			found[f.kind] = true
		}
	}
	return found
}

// strikes tells whether a fault hits what goes on meanwhile. A relay that was away from before on does nothing then.
func (h happened) strikes(from, to time.Time) bool {
	return h.overlaps(from, to) && (kinds[h.kind].site != relaySite || h.begun.After(from))
}

func (h happened) overlaps(from, to time.Time) bool {
	return !h.begun.After(to) && !h.ended.Before(from)
}

// recovery is how long it took after the end of a fault.
type recovery struct {
	// flow is until each scope that had events waiting has got one exported: the slowest one's time.
	flow time.Duration
	// all is until everything that was committed before the end was exported.
	all time.Duration
}

// recovered measures from the table alone. What other faults have held up counts as well.
func recovered(end time.Time, rows []row) recovery {
	waiting := map[string]bool{}
	next := map[string]time.Time{}
	var r recovery
	for _, row := range rows {
		if !row.isExported || !row.exported.After(end) {
			continue
		}
		if row.created.Before(end) {
			waiting[row.scope] = true
			r.all = max(r.all, row.exported.Sub(end))
		}
		if at, any := next[row.scope]; !any || row.exported.Before(at) {
			next[row.scope] = row.exported
		}
	}
	for scope := range waiting {
		r.flow = max(r.flow, next[scope].Sub(end))
	}
	return r
}
