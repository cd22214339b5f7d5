package relay

import (
	"cmp"
	"container/heap"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"outboxrelay/envelope"
)

const (
	// After a claim of all there was: the first wait, what it is longer for each due row
	// that was looked at in vain, and how long it is at most.
	firstIdleWait    = 10 * time.Millisecond
	waitPerBlocked   = 100 * time.Microsecond
	longestFirstWait = 100 * time.Millisecond

	// Putting back very many turns whose topic is closed takes time, so it is done less often.
	putBackPerScope = 20 * time.Microsecond

	notReadyWait = time.Second // between two questions whether the sink can take a scope's events

	// Claims that failed are followed by ones that are so many times smaller, and those by larger
	// ones again up to this many rows; then as many as usual are asked for.
	smaller    = 30
	mostProbed = 500

	// A scope of which claims are refused is claimed of after growing waits, at least so many times what
	// the last one took; one such scope at a time, so that others have the other workers.
	longestClaimWait = 5 * time.Second
	sickWaits        = 5
	// quickClaim is what a claim may take, unless it is of so few rows as there can be.
	quickClaim = 3 * time.Second

	// Scopes of which nothing could be claimed are looked at together, if there are so
	// many of them: so few cost as much to look at as to claim from. If their topic is in
	// trouble a single one is looked at too: only who has something to send is to probe it.
	fewestLooked = 4
	mostLooked   = 1000
	lookAhead    = 8 // those too whose wait is over but for this fraction
)

// scheduler decides which scope is claimed next. Scopes wait in the order in which
// they come due, so one with much work goes behind all others that are due after
// each of its claims, and whatever capacity those leave is its own.
//
// Scopes whose last claim left nothing are idle. They wait apart, and are looked at
// together before anything is claimed of them, so that ten thousand of them cost little.
//
// A scope is out of its queue from next until one of the put calls: a relay makes
// one claim of a scope at a time, while former claims of it are still being
// published and settled.
type scheduler struct {
	poll  time.Duration // longest wait of an idle scope
	topic func(envelope.Scope) string
	// followed is how much of what may wait for answers in the background does so, 1 for all.
	followed func() float64

	mu      sync.Mutex
	scopes  map[envelope.Scope]*turn
	topics  map[string]*topic
	held    map[envelope.Scope]int  // those of which nothing may be claimed; see hold
	ever    map[envelope.Scope]bool // those that are or were served
	trouble int                     // how many of the topics have troubles
	probes  int                     // how many of them workers are probing
	silent  int                     // how many are silent
	looks   int                     // how many scopes are looked at together at most
	sick    *turn                   // is claimed of although its last claims were refused
	queue   turnQueue               // to be claimed of
	idle    turnQueue               // to be looked at
	seq     uint64
	changed chan struct{} // closed and replaced when the queue's head may be due earlier
}

// turn is one scope's place in the queue.
type turn struct {
	scope envelope.Scope
	wait  time.Duration // the last idle wait; whoever took the turn out has it alone
	idle  bool          // likewise: its last claim left nothing

	// Guarded by scheduler.mu.
	due     time.Time
	seq     uint64     // first come, first served among equal due times
	in      *turnQueue // nil while it is taken out
	index   int        // there
	removed bool

	topic     *topic
	much      bool      // has more than the last claim took, as far as is known
	most      int       // rows of the next claim, 0 for as many as usual; see failed
	refused   int       // claims in a row that were refused
	unsettled int       // and claims of which what was decided could not be written; see unsettled
	slow      time.Time // when something of it last took long, or failed
}

// newScheduler makes one without scopes. topicOf names the topic of a scope.
func newScheduler(poll time.Duration, topicOf func(envelope.Scope) string, followed func() float64) *scheduler {
	return &scheduler{poll: poll, topic: topicOf, followed: followed, looks: mostLooked, scopes: map[envelope.Scope]*turn{}, topics: map[string]*topic{}, held: map[envelope.Scope]int{}, ever: map[envelope.Scope]bool{}, changed: make(chan struct{})}
}

// set replaces the scopes that are served. New ones are due at once; one that is
// taken out gets no further turn.
func (s *scheduler) set(scopes []envelope.Scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := make(map[envelope.Scope]*turn, len(scopes))
	topics := map[string]*topic{}
	for _, scope := range scopes {
		if keep[scope] != nil {
			continue // named twice
		}
		t, ok := s.scopes[scope]
		if !ok {
			t = &turn{scope: scope, idle: true}
			s.enqueue(t, time.Now())
		}
		keep[scope], s.ever[scope] = t, true
		name := s.topic(scope)
		if topics[name] == nil {
			topics[name] = cmp.Or(s.topics[name], &topic{})
		}
		t.topic = topics[name]
	}
	for name, topic := range s.topics {
		if topics[name] == nil {
			s.forget(topic)
		}
	}
	for scope, t := range s.scopes {
		if _, ok := keep[scope]; !ok {
			t.removed = true
		}
	}
	s.scopes, s.topics = keep, topics
}

// work is what a worker is to do: claim of one scope, or look at one or more.
type work struct {
	turns []*turn
	look  bool
}

// next waits for scopes to come due and takes them out of their queue. ok is false when ctx
// ended first. The caller gives one back with claimed, failed or later, and those that
// were to be looked at with looked, unseen or later.
func (s *scheduler) next(ctx context.Context) (next work, ok bool) {
	for ctx.Err() == nil {
		next, wait, changed := s.take()
		if next.turns != nil {
			return next, true
		}
		sleep(ctx, wait, changed)
	}
	return work{}, false
}

// take gives what is due first, else how long until something is.
func (s *scheduler) take() (next work, wait time.Duration, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now() // of all of it: so those that are put back are not looked at again
	for {
		queue, ok := s.first()
		if !ok {
			return work{}, time.Hour, s.changed
		}
		if wait = (*queue)[0].due.Sub(now); wait > 0 {
			return work{}, wait, s.changed
		}
		if queue == &s.idle {
			if turns := s.group(); turns != nil {
				return work{turns, true}, 0, nil
			}
		}
		first := heap.Pop(queue).(*turn)
		if wait := s.closed(first); wait > 0 {
			wait += time.Duration(len(s.scopes)) * putBackPerScope
			s.enqueue(first, now.Add(min(wait, notReadyWait)))
			continue
		}
		if first.refused > 0 {
			s.sick = first
		}
		return work{turns: []*turn{first}}, 0, nil
	}
}

// unsettled tells that what was decided of a scope's claim before anything was sent could not be written. It is claimed of by
// itself next, after growing waits.
func (s *scheduler) unsettled(scope envelope.Scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.scopes[scope]; t != nil {
		t.unsettled++
		s.probed(t)
		s.wake(t, time.Now().Add(growing(firstDatabaseWait, longestClaimWait, t.unsettled)))
	}
}

// settled tells that a claim of a scope went well to its end.
func (s *scheduler) settled(scope envelope.Scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.scopes[scope]; t != nil {
		t.unsettled = 0
	}
}

// everServed gives the scopes that are served, or were.
func (s *scheduler) everServed() []envelope.Scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.ever))
}

// first is the queue whose head comes first; ok is false if both are empty. The caller
// holds mu.
func (s *scheduler) first() (queue *turnQueue, ok bool) {
	for _, q := range []*turnQueue{&s.queue, &s.idle} {
		for q.Len() > 0 && (*q)[0].removed {
			heap.Pop(q)
		}
		if q.Len() > 0 && (!ok || (*q)[0].before((*queue)[0])) {
			queue, ok = q, true
		}
	}
	return queue, ok
}

// group takes out idle turns that are due, or nearly so, to be looked at together; nil if
// they are too few. The caller holds mu.
func (s *scheduler) group() (turns []*turn) {
	if s.looks < fewestLooked {
		s.looks = max(1, 2*s.looks)
		return nil
	}
	now := time.Now()
	fewest := fewestLooked
	if s.idle[0].topic.troubles > 0 {
		fewest = 1
	}
	var early []*turn
	for s.idle.Len() > 0 && len(turns) < s.looks && !s.idle[0].due.After(now.Add(s.poll/lookAhead)) {
		switch t := heap.Pop(&s.idle).(*turn); {
		case t.removed:
		case t.due.After(now.Add(t.wait / lookAhead)):
			early = append(early, t)
		default:
			turns = append(turns, t)
		}
	}
	if len(turns) < fewest {
		early, turns = append(early, turns...), nil
	}
	for _, t := range early {
		heap.Push(&s.idle, t)
	}
	return turns
}

// looked gives turns back after a look, which says how long it is for each until its
// first row is due. Those with such a row are to be claimed of.
func (s *scheduler) looked(turns []*turn, due []time.Duration) {
	s.mu.Lock()
	s.looks = min(2*s.looks, mostLooked)
	s.mu.Unlock()
	for i, t := range turns {
		if due[i] <= 0 {
			t.idle = false
			s.put(t, 0)
			continue
		}
		s.longer(t, firstIdleWait)
		s.put(t, min(t.wait, due[i]))
	}
}

// unseen gives turns back after a look that failed. Then fewer are looked at together, and
// in the end each is claimed of by itself: one whose rows can't be looked at in time does
// not hide those of others.
func (s *scheduler) unseen(turns []*turn) {
	s.mu.Lock()
	s.looks = len(turns) / 10
	s.mu.Unlock()
	for _, t := range turns {
		s.put(t, firstDatabaseWait)
	}
}

// failed gives a turn back after a claim that failed when it asked for so many rows. The
// next one asks for fewer: what a database can't do in time for a thousand rows it may
// do for one, and a row that takes very long is found so and dealt with. If the database has
// refused it, after so long, that is about the scope, and not about the way to the database.
func (s *scheduler) failed(t *turn, rows int, refused bool, took time.Duration) {
	s.mu.Lock()
	t.most = max(1, rows/smaller)
	t.idle = false
	wait := firstDatabaseWait
	if refused {
		t.refused++
		wait = max(growing(firstDatabaseWait, longestClaimWait, t.refused), sickWaits*took)
	}
	s.probed(t)
	s.mu.Unlock()
	s.put(t, wait)
}

// wake changes when a turn that waits in the queue is due. The caller holds mu.
func (s *scheduler) wake(t *turn, due time.Time) {
	if t.in != nil {
		heap.Remove(t.in, t.index)
		s.enqueue(t, due)
	}
}

// claimed gives a turn back after a claim, and decides when the scope is looked at
// again: at once if there are more rows to look at, else after waits that grow up to the
// poll interval while nothing is found, and begin longer the more was looked at in vain.
// Also a claim that found rows is followed by a wait, if it was all of them: under a steady
// load that makes for few claims, of some rows each.
func (s *scheduler) claimed(t *turn, c Claim) {
	if c.Busy {
		s.busy(t)
		return
	}
	s.mu.Lock()
	if t.most *= 2; t.most > mostProbed {
		t.most = 0
	}
	t.refused, t.much = 0, c.More
	if len(c.Rows) == 0 {
		s.probed(t)
	}
	s.mu.Unlock()
	if len(c.Rows) > 0 || c.More {
		t.wait = 0
	}
	if t.idle = !c.More; !t.idle {
		s.put(t, 0)
		return
	}
	first := min(firstIdleWait+time.Duration(c.Seen-len(c.Rows))*waitPerBlocked, longestFirstWait)
	s.longer(t, first)
	s.put(t, t.wait)
}

// busy gives a turn back after a claim that found another one under way.
func (s *scheduler) busy(t *turn) {
	s.mu.Lock()
	s.probed(t)
	s.mu.Unlock()
	s.longer(t, firstIdleWait)
	s.put(t, t.wait)
}

// longer makes a turn's next wait half as long again as the last one, within a first one and the poll interval.
func (s *scheduler) longer(t *turn, first time.Duration) {
	t.wait = min(max(t.wait*3/2, first), s.poll)
}

// later gives a turn back unused.
func (s *scheduler) later(t *turn, wait time.Duration) { s.put(t, wait) }

// hold keeps a scope from being claimed until as many calls of letGo: what is known of its rows
// can't be written, and each further claim would only add to that.
func (s *scheduler) hold(scope envelope.Scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[scope]++
}

func (s *scheduler) letGo(scope envelope.Scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[scope]--; s.held[scope] == 0 {
		delete(s.held, scope)
	}
}

func (s *scheduler) put(t *turn, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sick == t {
		s.sick = nil
	}
	if !t.removed {
		s.enqueue(t, time.Now().Add(wait))
	}
}

// enqueue adds a turn and wakes whoever waits. The caller holds mu.
func (s *scheduler) enqueue(t *turn, due time.Time) {
	s.seq++
	t.due, t.seq = due, s.seq
	queue := &s.queue
	if t.idle {
		queue = &s.idle
	}
	heap.Push(queue, t)
	if t.index == 0 {
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// size is how many scopes are served.
func (s *scheduler) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.scopes)
}

// turnQueue is a container/heap of turns, the earliest due first. They know where they are.
type turnQueue []*turn

func (t *turn) before(other *turn) bool {
	if t.due.Equal(other.due) {
		return t.seq < other.seq
	}
	return t.due.Before(other.due)
}

func (q turnQueue) Len() int           { return len(q) }
func (q turnQueue) Less(i, j int) bool { return q[i].before(q[j]) }
func (q turnQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}
func (q *turnQueue) Push(x any) {
	t := x.(*turn)
	t.in, t.index = q, len(*q)
	*q = append(*q, t)
}
func (q *turnQueue) Pop() any {
	old := *q
	last := len(old) - 1
	t := old[last]
	old[last] = nil
	*q = old[:last]
	t.in = nil
	return t
}

// sleep waits for d, or less when wake is closed; false when ctx ended.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	if d <= 0 { // without a timer: the race detector of Go 1.26 crashes on two that are over when made in one synctest bubble
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-timer.C:
	}
	return ctx.Err() == nil
}
