package monitor

import (
	"math"
	"sync"
	"time"

	"outboxrelay/relay"
)

const (
	paceStep   = 5 * time.Second
	pacePoints = 360 // half an hour
	paceWiden  = 60  // the page draws 5 minutes, and 5 more each time that those are over
	rateSteps  = 2   // the rate is that of the last 10 s
	lagSteps   = 12  // the lag that of the last minute

	// Lags are counted by size, four sizes for each doubling of 1 ms up to 18 h, so a
	// quantile is at most 9% off.
	lagSizes = 105
)

// pace is what was delivered lately, and how fast: a ring of points in time.
type pace struct {
	mu    sync.Mutex
	begin time.Time // of the point under way
	ring  [pacePoints]point
	ended int // points that ended, also those that the ring no longer holds
	now   point
	total int
}

// point is what happened in one step.
type point struct {
	delivered int
	lags      lags
	waiting   int // at its end; -1 if it isn't known
}

func newPace(now time.Time) pace { return pace{begin: now, now: point{waiting: -1}} }

// advance ends the points that are over.
func (p *pace) advance(now time.Time) {
	if idle := now.Sub(p.begin)/paceStep - pacePoints; idle > 0 { // a process that was frozen, say
		p.begin = p.begin.Add(idle * paceStep)
	}
	for now.Sub(p.begin) >= paceStep {
		p.ring[p.ended%pacePoints] = p.now
		p.ended++
		p.begin = p.begin.Add(paceStep)
		p.now = point{waiting: p.now.waiting}
	}
}

func (p *pace) settled(now time.Time, verdicts []relay.Verdict, results []relay.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance(now)
	for i, v := range verdicts {
		if v.Exported && results[i].Status != relay.Lost {
			p.total++
			p.now.delivered++
			p.now.lags.add(results[i].Lag)
		}
	}
}

// waits takes how many events wait; -1 if that isn't known.
func (p *pace) waits(now time.Time, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance(now)
	p.now.waiting = n
}

// Pace is a [pace] as the page has it. Lags are in seconds, null where nothing was
// delivered. The lists go up to the last step that ended.
type Pace struct {
	Delivered int      `json:"delivered"` // since the start
	Rate      float64  `json:"per_second"`
	Median    *float64 `json:"lag_median"`
	Slow      *float64 `json:"lag_99"`

	Step    float64    `json:"step_seconds"`
	Steps   int        `json:"steps"` // that the page draws
	Counts  []int      `json:"delivered_steps"`
	Medians []*float64 `json:"lag_median_steps"`
	Slows   []*float64 `json:"lag_99_steps"`
	Waiting []*int     `json:"waiting_steps"`
}

// view is what the page shows of it.
func (p *pace) view(now time.Time) Pace {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance(now)
	held := min(p.ended, pacePoints)
	v := Pace{
		Delivered: p.total, Step: paceStep.Seconds(), Steps: min((held/paceWiden+1)*paceWiden, pacePoints),
		Counts: make([]int, held), Medians: make([]*float64, held), Slows: make([]*float64, held), Waiting: make([]*int, held),
	}
	lately, recent := p.now.delivered, p.now.lags
	for i := range held {
		pt := &p.ring[(p.ended-held+i)%pacePoints]
		v.Counts[i], v.Medians[i], v.Slows[i] = pt.delivered, pt.lags.quantile(0.5), pt.lags.quantile(0.99)
		if n := pt.waiting; n >= 0 {
			v.Waiting[i] = &n
		}
		if i >= held-rateSteps {
			lately += pt.delivered
		}
		if i >= held-lagSteps {
			recent.merge(&pt.lags)
		}
	}
	took := time.Duration(min(held, rateSteps))*paceStep + now.Sub(p.begin)
	v.Rate = float64(lately) / max(took.Seconds(), 1)
	v.Median, v.Slow = recent.quantile(0.5), recent.quantile(0.99)
	return v
}

// lags counts lags by their size.
type lags [lagSizes]uint32

func (l *lags) add(d time.Duration) {
	size := 0
	if d > time.Millisecond {
		size = min(int(math.Ceil(4*math.Log2(float64(d)/float64(time.Millisecond)))), lagSizes-1)
	}
	l[size]++
}

func (l *lags) merge(other *lags) {
	for i, n := range other {
		l[i] += n
	}
}

// quantile is the middle of the size that the q-th of all lags has, in seconds; nil if
// there are none.
func (l *lags) quantile(q float64) *float64 {
	var all uint64
	for _, n := range l {
		all += uint64(n)
	}
	if all == 0 {
		return nil
	}
	rank, size := uint64(math.Ceil(q*float64(all))), 0
	for below := uint64(l[0]); below < rank; below += uint64(l[size]) {
		size++
	}
	seconds := math.Exp2((float64(size)-0.5)/4) / 1000
	return &seconds
}
