package relay_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

const (
	simulations = 6
	// chaos is for how long everything goes wrong, calm how long it may take then until
	// all is delivered.
	chaos = 20 * time.Minute
	calm  = time.Hour
)

// TestSimulation lets relays that share an outbox run, crash and begin anew, while the
// database and the sink do all that they may do, in virtual time. Whatever happens:
// nothing is lost, an operation's first deliveries are in order, nothing is parked but
// faulty rows, and in the end all is delivered.
//
// A seed decides what goes wrong how often; the order in which goroutines run is not in
// its hands, so another run with the same seed is alike but not the same.
func TestSimulation(t *testing.T) {
	for range simulations {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			bubble(t, func(f *fixture) { newSimulation(f, seed).run() })
		})
	}
}

type simulation struct {
	*fixture
	scopes     []envelope.Scope
	operations []uuid.UUID
	quiet      atomic.Bool // nothing goes wrong any more

	mu     sync.Mutex
	random *rand.Rand
}

func newSimulation(f *fixture, seed uint64) *simulation {
	s := &simulation{fixture: f, random: rand.New(rand.NewPCG(seed, 0)), scopes: append(f.scopes(2), envelope.NonTenant())}
	f.config = relay.Config{
		Namespace: namespace, BatchRows: 1 + s.below(20), Workers: 1 + s.below(4), PollInterval: time.Second,
		RetryDelay: time.Second, RetryMaxDelay: time.Minute,
	}
	for range 10 + s.below(20) {
		s.operations = append(s.operations, uuid.New())
	}
	f.sink.Handle = s.answer
	f.store.SetFault(s.fault)
	return s
}

// below is a random number from 0 to n-1.
func (s *simulation) below(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

// chance is true for that many in a hundred, as long as things go wrong.
func (s *simulation) chance(percent int) bool {
	return s.below(100) < percent && !s.quiet.Load()
}

// span is a random time below d.
func (s *simulation) span(d time.Duration) time.Duration { return time.Duration(s.below(int(d))) }

func (s *simulation) run() {
	begin := time.Now()
	var all sync.WaitGroup
	for range 2 + s.below(2) {
		all.Go(func() { s.crashing(begin.Add(chaos)) })
	}
	for time.Since(begin) < chaos {
		time.Sleep(s.span(20 * time.Second))
		n := s.below(len(s.operations))
		s.store.Add(namespace, s.scopes[n%len(s.scopes)], s.operations[n], 1+s.below(4))
		s.check()
	}
	all.Wait()
	s.quiet.Store(true)
	s.check()
	s.mend()

	s.make()
	stop := s.start(s.scopes...)
	begin = time.Now()
	for !s.drained(s.scopes...)() {
		if time.Since(begin) > calm {
			s.Fatalf("not all is exported %s after all was well: %v", calm, s.unexported())
		}
		time.Sleep(time.Second)
	}
	stop()
	s.check()
	s.complete()
}

// crashing runs a relay again and again. It ends orderly or by a crash.
func (s *simulation) crashing(until time.Time) {
	for time.Now().Before(until) {
		process := &mortal{Store: s.store, Sink: unreliable{s}}
		r, err := relay.New(s.config, process, process, s.tally)
		if err != nil {
			s.Error(err)
			return
		}
		r.SetScopes(s.scopes)
		ctx, cancel := context.WithTimeout(s.Context(), 10*time.Second+s.span(3*time.Minute))
		if s.chance(50) {
			after := s.span(2 * time.Minute)
			time.AfterFunc(after, func() { process.dead.Store(true) })
		}
		if err := r.Run(ctx); err != nil {
			s.Errorf("run: %v", err)
		}
		cancel()
	}
}

var errKilled = errors.New("the process was killed")

// unreliable is a sink that isn't ready now and then.
type unreliable struct{ *simulation }

func (u unreliable) Ready(envelope.Scope) error {
	if u.chance(2) {
		return errors.New("not ready")
	}
	return nil
}

func (u unreliable) Publish(ctx context.Context, events []envelope.Event, answer func(int, error)) {
	u.sink.Publish(ctx, events, answer)
}

// fault makes calls of the store slow or fail, before or after they took effect.
func (s *simulation) fault(ctx context.Context, call relaytest.Call, done bool) error {
	switch {
	case s.chance(4):
		return errors.New("away")
	case s.chance(2):
		pause(ctx, s.span(10*time.Second))
	case s.chance(1):
		pause(ctx, s.span(40*time.Second)) // beyond what a lease leaves for a send
	}
	return nil
}

// answer does to the events what a sink may do to them.
func (s *simulation) answer(ctx context.Context, send *relaytest.Send) {
	undelivered := map[uuid.UUID]bool{}
	for i, e := range send.Events {
		switch {
		case undelivered[e.OperationID]:
			send.Answer(i, relay.NotAttempted.Wrap(errors.New("behind")))
			continue
		case s.faulty(e.OperationID, e.StateVersion):
			send.Answer(i, relay.RowFault.Wrap(errors.New("faulty")))
		case s.chance(3):
			send.Answer(i, relay.Environment.Wrap(errors.New("no leader")))
		case s.chance(3):
			send.Answer(i, errors.New("refused"))
		case s.chance(1):
			send.Answer(i, relay.Unknown.Wrap(errors.New("client closed")))
		case s.chance(1): // no answer, but it arrived
			send.Arrive(i)
		case s.chance(1): // no answer
		case s.chance(6):
			pause(ctx, s.span(time.Minute)) // also beyond the lease
			send.Answer(i, nil)
			continue
		default:
			send.Answer(i, nil)
			continue
		}
		undelivered[e.OperationID] = true
	}
}

// faulty is true for a few rows, as long as nobody has mended them.
func (s *simulation) faulty(operation uuid.UUID, version int64) bool {
	return !s.quiet.Load() && operation[15]%4 == 0 && version%5 == 0
}

// check is for any moment.
func (s *simulation) check() {
	s.Helper()
	var rows []relaytest.Stored // before the events, of which more may arrive meanwhile
	for _, scope := range s.scopes {
		rows = append(rows, s.store.Rows(scope)...)
	}
	delivered := map[string]bool{}
	last := map[uuid.UUID]int64{}
	for _, e := range s.sink.Delivered() {
		if delivered[e.ID()] {
			continue // again
		}
		delivered[e.ID()] = true
		if e.StateVersion != last[e.OperationID]+1 {
			s.Errorf("operation %s: version %d was first delivered after %d", e.OperationID, e.StateVersion, last[e.OperationID])
		}
		last[e.OperationID] = e.StateVersion
	}
	for _, row := range rows {
		if row.Exported && !delivered[fmt.Sprintf("%s:%d", row.Operation, row.Version)] {
			s.Errorf("exported but not delivered: %v", row)
		}
		if row.Parked && !row.Exported && row.LastError != "faulty" {
			s.Errorf("parked although it is not faulty: %v", row)
		}
	}
}

// mend retries what was parked, as an operator would.
func (s *simulation) mend() {
	now := s.store.Now()
	var parked []uuid.UUID
	s.store.Edit(func(r *relaytest.Stored) {
		if r.Parked && !r.Exported {
			parked = append(parked, r.Operation)
		}
	})
	s.store.Edit(func(r *relaytest.Stored) {
		if slices.Contains(parked, r.Operation) && !r.Exported {
			r.Parked, r.Due = false, now
		}
	})
}

func (s *simulation) unexported() (rows []relaytest.Stored) {
	for _, scope := range s.scopes {
		for _, row := range s.store.Rows(scope) {
			if !row.Exported {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// complete checks that every row's event was delivered.
func (s *simulation) complete() {
	s.Helper()
	versions := map[uuid.UUID]int64{}
	for _, e := range s.sink.Delivered() {
		versions[e.OperationID] = max(versions[e.OperationID], e.StateVersion)
	}
	rows, again := 0, len(s.sink.Delivered())
	for _, scope := range s.scopes {
		for _, row := range s.store.Rows(scope) {
			rows++
			if versions[row.Operation] < row.Version {
				s.Errorf("never delivered: %v", row)
			}
		}
	}
	s.Logf("%d events, %d deliveries, %d marked late, %d verdicts lost", rows, again,
		s.tally.status(relay.MarkedLate), s.tally.status(relay.Lost))
}
