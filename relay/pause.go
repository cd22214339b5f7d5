// Topics to which nothing gets through: how long they are left alone, and what is tried
// with them. It is the part of the scheduler that all scopes of a topic share.

package relay

import (
	"time"

	"outboxrelay/envelope"
)

const (
	// A topic to which no event gets through is paused for growing waits. Its scopes are
	// looked at again no later than notReadyWait after that is over. Each topic in such
	// trouble makes the longest wait longer, so that all together are probed at most some
	// 200 times a second.
	firstPause    = time.Second
	longestPause  = 10 * time.Second
	pausePerTopic = 5 * time.Millisecond

	longestProbe = 30 * time.Second // after this the next probe is made

	// Each probe that fails is followed by one of twice as many rows, up to mostProbed: one
	// row says little if only its partition is in trouble.
	//
	// A probe without an answer takes a worker for quickPatience, so that only so many
	// topics are probed at a time.
	probesAtOnce = 2

	// A worker does not wait longer than this for the first answers of a topic in trouble, nor
	// of any other while as many topics as this are silent, or some part of what may wait for
	// answers does: when very many fall silent at once, each takes a worker only for so long.
	quickPatience = 100 * time.Millisecond
	manySilent    = 4
	manyFollowed  = 0.001
	// So many claims in a row of which nothing comes through, for a second, make a topic silent
	// if something came through lately: it may be one of its partitions that is.
	silentClaims = 3
	// While half of what may wait for answers does, claims of topics of which nothing has come
	// through for lately ask for so little, and rows that were left behind wait; with three
	// quarters, nothing is claimed for those in trouble. The rest is for others.
	lately       = 10 * time.Second
	crowded      = 0.5
	crowdedRows  = 10
	crowdedBytes = 16 // divides the usual number
	full         = 0.75
	// A topic counts as stalled for so long after its last pause: if somebody else sends all
	// meanwhile nothing of ours will show that it works again.
	stalledFor = 2 * time.Minute
	// In these moments after a pause others have the turn to probe, not the scope whose
	// events did not get through.
	othersFirst = 10 * time.Millisecond
	// What finds that many topics being probed, its own one silent, its scope held, or another whose
	// claims are refused being claimed of, waits so long.
	shortWait = 100 * time.Millisecond
)

// topic is where the events of one or more scopes go. They share its troubles.
type topic struct {
	troubles int       // claims in a row of which nothing got through
	paused   time.Time // nothing is claimed before
	prober   *turn     // makes a claim of a few rows to see whether the trouble is over
	probing  bool      // that may still take a worker
	silent   time.Time // until then nothing is claimed, since nothing has come through; zero if it has
	through  time.Time // when something last did
	quiet    int       // claims since then that workers wait for no longer
}

// closed is for how long nothing may be claimed of a scope. The caller holds mu.
func (s *scheduler) closed(turn *turn) time.Duration {
	if s.held[turn.scope] > 0 {
		return shortWait
	}
	if turn.refused > 0 && s.sick != nil {
		return shortWait
	}
	t := turn.topic
	if wait := time.Until(t.paused); wait > 0 {
		return wait
	}
	if wait := time.Until(t.silent); wait > 0 {
		return min(wait, shortWait)
	}
	if t.troubles > 0 && t.prober == nil && (s.probes >= probesAtOnce || s.followed() > full) {
		return shortWait
	}
	return 0
}

// limits is how many rows, and bytes, the next claim of a scope asks for: few, as a probe,
// while nothing of its topic gets through.
func (s *scheduler) limits(t *turn, rows int, bytes int64) (int, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.most > 0 {
		rows = min(t.most, rows)
	}
	if t.topic.troubles > 0 {
		if !t.topic.probing {
			t.topic.probing = true
			s.probes++
		}
		t.topic.prober, t.topic.paused = t, time.Now().Add(longestProbe) // one probe at a time
		rows = min(t.topic.probe(), rows)
	}
	if s.followed() > crowded && (t.topic.quiet >= silentClaims || time.Since(t.topic.through) > lately) {
		rows, bytes = min(crowdedRows, rows), max(1, bytes/crowdedBytes)
	}
	return rows, bytes
}

// probe is how many rows are tried with a topic in trouble.
func (t *topic) probe() int { return min(1<<min(t.troubles-1, 20), mostProbed) }

// probed ends a probe that had nothing to send. The caller holds mu.
func (s *scheduler) probed(t *turn) {
	if t.topic.prober == t {
		s.unprobe(t.topic)
		t.topic.paused = time.Time{}
	}
}

// unprobe makes room for the next probe. The caller holds mu.
func (s *scheduler) unprobe(t *topic) {
	t.prober = nil
	s.unhand(t)
}

// unhand notes that no worker waits for the topic's probe. The caller holds mu.
func (s *scheduler) unhand(t *topic) {
	if t.probing {
		t.probing = false
		s.probes--
	}
}

// unattended notes that no worker waits for a claim of a scope.
func (s *scheduler) unattended(scope envelope.Scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[s.topic(scope)]; t != nil {
		s.unhand(t)
	}
}

// patience is for how long a worker waits for the answers to a claim of a scope.
func (s *scheduler) patience(scope envelope.Scope) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[s.topic(scope)]; s.followed() > manyFollowed || s.silent >= manySilent || t != nil && t.troubles > 0 {
		return quickPatience
	}
	return settleEvery
}

// hush notes that a worker waits no longer for a claim that began at a time, and of which
// nothing got through. Unless something else of its topic did, and if there are several,
// nothing more is claimed for that until news come, or should have come.
func (s *scheduler) hush(scope envelope.Scope, began, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[s.topic(scope)]
	if t == nil || t.through.After(began) {
		return
	}
	s.unhand(t)
	t.quiet++
	if t.troubles == 0 && (t.quiet < silentClaims || time.Since(t.through) < settleEvery) && began.Sub(t.through) < lately {
		return
	}
	if t.silent.IsZero() {
		s.silent++
	}
	t.silent = until
}

// unhush ends that. The caller holds mu.
func (s *scheduler) unhush(t *topic) {
	if !t.silent.IsZero() {
		t.silent = time.Time{}
		s.silent--
	}
}

// delivered takes the news of the end of a claim that began at a time, or of an answer before
// or after it. If nothing of the topic got through since then, for reasons that lie outside
// the events, the topic is paused, longer each time, so that a sink that refuses everything
// is asked seldom and with little, however many scopes wait; the first event that gets
// through ends that. Claims that were under way together count as one.
func (s *scheduler) delivered(scope envelope.Scope, through bool, began time.Time, jitter func(time.Duration) time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[s.topic(scope)]
	if t == nil {
		return // nothing that is served goes there any more
	}
	s.unhush(t)
	if through {
		t.through, t.quiet = time.Now(), 0
	}
	var due time.Time
	switch {
	case through && t.troubles > 0:
		s.forget(t)
		due = time.Now()
	case !through && !t.through.After(began) && (t.prober != nil || time.Until(t.paused) <= 0):
		if t.troubles == 0 {
			s.trouble++
		}
		t.troubles++
		s.unprobe(t)
		longest := max(longestPause, time.Duration(s.trouble)*pausePerTopic)
		t.paused = time.Now().Add(jitter(growing(firstPause, longest, t.troubles)))
		due = t.paused.Add(othersFirst)
	default:
		return
	}
	if turn := s.scopes[scope]; turn != nil {
		s.wake(turn, due)
	}
}

// undecided takes the end of a claim that says nothing of its topic: all of its events failed
// for their own sake.
func (s *scheduler) undecided(scope envelope.Scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := s.scopes[scope]
	if turn == nil {
		return
	}
	s.unhush(turn.topic)
	s.probed(turn)
	if turn.topic.troubles > 0 {
		s.wake(turn, time.Now())
	}
}

// forget ends a topic's troubles. The caller holds mu.
func (s *scheduler) forget(t *topic) {
	if t.troubles > 0 {
		s.trouble--
	}
	s.unprobe(t)
	s.unhush(t)
	*t = topic{through: t.through}
}

// stalled is how many claims in a row of a scope's topic got nothing through; 0 if the last
// is long ago.
func (s *scheduler) stalled(scope envelope.Scope) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[s.topic(scope)]; t != nil && time.Since(t.paused) < stalledFor {
		return t.troubles
	}
	return 0
}

// together is how many of so many rows of a scope, left behind by others, may be sent now; 0 if
// none. served is false if the scope isn't served. A claim that comes to nothing is undecided.
func (s *scheduler) together(scope envelope.Scope, most int, ready bool) (rows int, served bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, served := s.scopes[scope]
	switch {
	case !served:
		return 0, false
	case !ready || s.closed(t) > 0 || s.followed() > crowded:
		return 0, true
	case t.topic.troubles > 0:
		t.topic.prober, t.topic.paused = t, time.Now().Add(longestProbe) // one probe at a time
		return min(t.topic.probe(), most), true
	}
	return most, true
}
