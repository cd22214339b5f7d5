package relay_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

const namespace = "orders"

// fixture is a relay between an outbox in memory and a sink that the test decides on.
type fixture struct {
	*testing.T
	store  *relaytest.Store
	sink   *relaytest.Sink
	tally  *tally
	relay  *relay.Relay
	config relay.Config
}

// bubble runs a test in virtual time, in which nothing but what it waits for takes any.
func bubble(t *testing.T, test func(f *fixture)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{
			T: t, store: &relaytest.Store{}, sink: &relaytest.Sink{}, tally: &tally{T: t},
			config: relay.Config{Namespace: namespace, WorkerID: "worker"},
		}
		f.make()
		test(f)
	})
}

// make makes the relay anew.
func (f *fixture) make() { f.Helper(); f.makeFor(f.sink) }

// makeFor is make for another sink than the fixture's own.
func (f *fixture) makeFor(sink relay.Sink) {
	f.Helper()
	r, err := relay.New(f.config, f.store, sink, f.tally)
	if err != nil {
		f.Fatal(err)
	}
	f.relay = r
}

// start runs the relay until stop is called, which checks how it ended.
func (f *fixture) start(scopes ...envelope.Scope) (stop func()) {
	f.relay.SetScopes(scopes)
	ctx, cancel := context.WithCancel(f.Context())
	ended := make(chan error, 1)
	r := f.relay // a test may make another one meanwhile
	go func() {
		ended <- r.Run(ctx)
		close(ended)
	}()
	f.Cleanup(func() { // for a test that failed before it came to stop
		cancel()
		<-ended
	})
	return func() {
		f.Helper()
		cancel()
		at := time.Now()
		if err := <-ended; err != nil {
			f.Errorf("run: %v", err)
		}
		if took := time.Since(at); took > relay.DefaultGrace {
			f.Errorf("run ended %s after its context, want %s at most", took, relay.DefaultGrace)
		}
		f.tally.check()
	}
}

func (f *fixture) scope(id string) envelope.Scope {
	f.Helper()
	scope, err := envelope.Tenant(id)
	if err != nil {
		f.Fatal(err)
	}
	return scope
}

// scopes gives n scopes.
func (f *fixture) scopes(n int) []envelope.Scope {
	f.Helper()
	scopes := make([]envelope.Scope, n)
	for i := range scopes {
		scopes[i] = f.scope(fmt.Sprint("tenant-", i))
	}
	return scopes
}

// operation makes an operation with n events.
func (f *fixture) operation(scope envelope.Scope, n int) uuid.UUID {
	id := uuid.New()
	f.store.Add(namespace, scope, id, n)
	return id
}

// await waits, in steps of virtual time, until condition holds.
func (f *fixture) await(what string, condition func() bool) {
	f.Helper()
	for deadline := time.Now().Add(time.Hour); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.Fatalf("an hour passed, and still not: %s", what)
		}
	}
}

// pause waits, but not longer than ctx.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// drained is true when all rows of all those scopes are exported.
func (f *fixture) drained(scopes ...envelope.Scope) func() bool {
	return func() bool {
		for _, scope := range scopes {
			if slices.ContainsFunc(f.store.Rows(scope), func(r relaytest.Stored) bool { return !r.Exported }) {
				return false
			}
		}
		return true
	}
}

// row gives the scope's row with index i.
func (f *fixture) row(scope envelope.Scope, i int) relaytest.Stored {
	f.Helper()
	rows := f.store.Rows(scope)
	if i >= len(rows) {
		f.Fatalf("%s has %d rows, want more than %d", scope, len(rows), i)
	}
	return rows[i]
}

// versions gives the state versions that were delivered of an operation, in order.
func (f *fixture) versions(operation uuid.UUID) (versions []int64) {
	for _, e := range f.sink.Delivered() {
		if e.OperationID == operation {
			versions = append(versions, e.StateVersion)
		}
	}
	return versions
}

// deliveredOnce checks that an operation's events 1 to n were delivered, in order.
func (f *fixture) deliveredOnce(operation uuid.UUID, n int) {
	f.Helper()
	var want []int64
	for v := range int64(n) {
		want = append(want, v+1)
	}
	if got := f.versions(operation); !slices.Equal(got, want) {
		f.Errorf("of operation %s versions %v were delivered, want %v", operation, got, want)
	}
}

// claims counts the store's claims.
func (f *fixture) claims() int {
	f.tally.mu.Lock()
	defer f.tally.mu.Unlock()
	return f.tally.claims
}

// tally is an Observer that counts, and checks what must hold of what it is told.
type tally struct {
	*testing.T

	mu        sync.Mutex
	claims    int
	inFlight  map[string]int // rows, by token
	published map[string]int
	statuses  map[relay.Status]int
	troubles  map[relay.TroubleKind]int
	last      map[relay.TroubleKind]error
	blamed    map[envelope.Scope]bool // of database troubles
}

func (o *tally) Claimed(c relay.Claim, _ time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.claims++
	if len(c.Rows) == 0 {
		return
	}
	if o.inFlight == nil {
		o.inFlight, o.published = map[string]int{}, map[string]int{}
	}
	if _, twice := o.inFlight[c.Token]; twice {
		o.Errorf("token %s was used for two claims", c.Token)
	}
	o.inFlight[c.Token] = len(c.Rows)
}

func (o *tally) Published(c relay.Claim, _ time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.published[c.Token]++; o.published[c.Token] > 1 || o.inFlight[c.Token] == 0 {
		o.Errorf("claim %s was published %d times, with %d rows in flight", c.Token, o.published[c.Token], o.inFlight[c.Token])
	}
}

func (o *tally) Settled(c relay.Claim, verdicts []relay.Verdict, results []relay.Result, _ time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(verdicts) == 0 || len(verdicts) != len(results) {
		o.Errorf("settled %d verdicts with %d results", len(verdicts), len(results))
	}
	if o.statuses == nil {
		o.statuses = map[relay.Status]int{}
	}
	for _, r := range results {
		o.statuses[r.Status]++
	}
}

func (o *tally) Released(c relay.Claim) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.inFlight[c.Token] != len(c.Rows) {
		o.Errorf("claim %s is released with %d rows, want its %d", c.Token, len(c.Rows), o.inFlight[c.Token])
	}
	o.inFlight[c.Token] = 0
}

func (o *tally) Recovered(relay.Claim, []relay.Verdict) {}

func (o *tally) Fenced(relay.Slot, relay.Fencing) {}

func (o *tally) Trouble(t relay.Trouble) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t.Err == nil || !t.Scope.Valid() && t.Kind != relay.DatabaseTrouble {
		o.Errorf("trouble without error or scope: %+v", t)
	}
	if o.troubles == nil {
		o.troubles, o.last = map[relay.TroubleKind]int{}, map[relay.TroubleKind]error{}
		o.blamed = map[envelope.Scope]bool{}
	}
	o.troubles[t.Kind]++
	o.last[t.Kind] = t.Err
	if t.Kind == relay.DatabaseTrouble {
		o.blamed[t.Scope] = true
	}
}

// trouble is how often one kind was told, and the last error of it.
func (o *tally) trouble(kind relay.TroubleKind) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.troubles[kind], o.last[kind]
}

// blames fails unless all database troubles were of that scope.
func (o *tally) blames(want envelope.Scope) {
	o.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for scope := range o.blamed {
		if scope != want {
			o.Errorf("a trouble with the database is told of %s, want it of %s only", scope, want)
		}
	}
}

// status is how many verdicts ended so.
func (o *tally) status(s relay.Status) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.statuses[s]
}

// check is for when nothing runs any more: what was claimed has been released.
func (o *tally) check() {
	o.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for token, rows := range o.inFlight {
		if rows != 0 {
			o.Errorf("claim %s still counts %d rows as in flight", token, rows)
		}
	}
}
