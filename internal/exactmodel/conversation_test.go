package exactmodel

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

const (
	namespace = "orders"
	prefix    = "model"
	identity  = "database"
	lease     = 24 * time.Hour
)

var (
	operationIDs = [...]uuid.UUID{uuid.MustParse("00000000-0000-4000-8000-000000000001"), uuid.MustParse("00000000-0000-4000-8000-000000000002")}
	versions     = [...]int64{1, 2, 1}
	scope        = envelope.NonTenant()
)

// conversation is a real relay, of which it is all ports, up to the first call that has no answer
// yet. The other thread of the relay stands still meanwhile.
type conversation struct {
	*testing.T
	relay.Unobserved
	question
	answers []answer
	next    call
	taking  bool

	names   map[token]string // of claims made here
	asked   chan struct{}    // closed when next is there
	over    <-chan struct{}  // closed when the relay is to end
	looked  chan struct{}    // the helper has looked, if somebody waits for that
	waiting atomic.Bool      // somebody does
}

// converse has a relay hear what was heard, and gives what it does next.
func converse(t *testing.T, q question) (next call) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		c := &conversation{
			T: t, question: q, answers: q.heard.answers(), names: map[token]string{},
			asked: make(chan struct{}), looked: make(chan struct{}), over: ctx.Done(), taking: true,
		}
		if q.ready {
			c.answers = append([]answer{{}, {}, one(newToken(0, initial), 0)}, c.answers...)
		}
		r, err := relay.New(relay.Config{
			Namespace: namespace, Workers: 1, Lease: lease,
			ExactlyOnce: &relay.ExactlyOnce{Prefix: prefix, Sink: c, Store: c},
		}, c, c, c)
		if err != nil {
			t.Fatal(err)
		}
		r.SetScopes([]envelope.Scope{scope})
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		select {
		case <-c.asked:
		case <-time.After(10 * lease):
			t.Errorf("it asks for nothing more: %s", q)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		next = c.next
	})
	return next
}

// one is an answer of one claim or entry.
func one(t token, rows mask) answer { return answer{held: [mostRows]held{{token: t, rows: rows}}} }

var (
	errFailed = errors.New("it failed, or the answer was lost")
	errOver   = errors.New("the conversation is over")
)

// hear gives the answer to the next call, or ends the conversation with it.
func (c *conversation) hear(is call) (answer, error) {
	switch is.kind {
	case look, open:
		c.taking = true
	case claim:
		c.taking = false
	}
	if len(c.answers) == 0 {
		is.taking = c.taking && !c.helper
		select {
		case <-c.asked:
		default:
			c.next = is
			close(c.asked)
		}
		<-c.over
		return answer{}, errOver
	}
	a := c.answers[0]
	c.answers = c.answers[1:]
	if a.stale {
		c.waiting.Store(true)
		<-c.looked
		c.waiting.Store(false)
		synctest.Wait() // the helper has dealt with it
	}
	switch a.outcome {
	case failed:
		return a, errFailed
	case fenced:
		return a, relay.Environment.Wrap(fmt.Errorf("refused: %w", relay.ErrFenced))
	}
	return a, nil
}

func slotOf(t token) relay.Slot { return relay.SlotOf(prefix, t.slot(), 0) }

// name is a token as the relay knows it.
func (c *conversation) name(t token) string {
	if name, ok := c.names[t]; ok {
		return name
	}
	if t.number() == initial {
		return slotOf(t).ID + "#init"
	}
	return fmt.Sprintf("%s#%016x", slotOf(t).ID, t)
}

// tokenOf is the token of a name, 0 for a new one.
func (c *conversation) tokenOf(name string) token {
	for t := token(1); t < relays<<4; t++ {
		if c.name(t) == name {
			return t
		}
	}
	return 0
}

func ids(rows mask) (list []int64) {
	for r := range mostRows {
		if rows.has(r) {
			list = append(list, int64(r+1))
		}
	}
	return list
}

// Held lists claims.
func (c *conversation) Held(context.Context, []envelope.Scope) ([]relay.Held, error) {
	switch helps := byHelper(); {
	case c.helper && !helps:
		<-c.over // the worker stands still
		return nil, errOver
	case helps && c.waiting.Load():
		c.looked <- struct{}{}
		return []relay.Held{{Scope: scope, Token: c.name(newToken(0, 1)), Rows: ids(all), Expired: true}}, nil
	case helps && !c.helper:
		return nil, nil // it sees nothing
	}
	a, err := c.hear(call{kind: look})
	var list []relay.Held
	for _, h := range a.held {
		if h.token != 0 {
			list = append(list, relay.Held{Scope: scope, Token: c.name(h.token), Rows: ids(h.rows), Expired: h.expired})
		}
	}
	return list, err
}

// byHelper is true in a call by a relay's helper.
func byHelper() bool {
	var callers [16]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, ".helpOnce") {
			return true
		}
		if !more {
			return false
		}
	}
}

// Durable is always.
func (c *conversation) Durable(context.Context) error { return nil }

// Entries tells of nobody: there are no other rows, and nothing is decided by it.
func (c *conversation) Entries(context.Context, string) (map[relay.Slot]relay.Entry, error) {
	return nil, nil
}

// Identity names the database.
func (c *conversation) Identity(context.Context) (string, error) { return identity, nil }

// Open takes the slot.
func (c *conversation) Open(context.Context, relay.Slot) (relay.Session, error) {
	_, err := c.hear(call{kind: open})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (c *conversation) slotNumber(s relay.Slot) int {
	for i := range relays {
		if relay.SlotOf(prefix, i, 0) == s {
			return i
		}
	}
	c.Errorf("there is no slot %s", s.ID)
	return 0
}

// Fence fences another slot.
func (c *conversation) Fence(_ context.Context, s relay.Slot) error {
	_, err := c.hear(call{kind: fence, slot: c.slotNumber(s)})
	return err
}

// Last looks an entry up.
func (c *conversation) Last(_ context.Context, s relay.Slot) (e relay.Entry, ok bool, err error) {
	a, err := c.hear(call{kind: last, slot: c.slotNumber(s)})
	if err != nil || a.held[0].token == 0 {
		return e, false, err
	}
	e = relay.Entry{Token: c.name(a.held[0].token), Source: identity + "/" + namespace}
	if a.held[0].rows != 0 {
		e.Rows = map[envelope.Scope][]int64{scope: ids(a.held[0].rows)}
	}
	return e, true, nil
}

// Claim claims rows.
func (c *conversation) Claim(_ context.Context, req relay.Request) (relay.Claim, error) {
	if !req.Exact {
		c.Error("a claim that is not exact")
	}
	a, err := c.hear(call{kind: claim, token: c.tokenOf(req.Token), limit: min(req.Rows, mostRows)})
	claim := relay.Claim{Scope: req.Scope, Token: req.Token, Exact: true, Expires: time.Now().Add(lease)}
	if err != nil {
		return relay.Claim{}, err
	}
	c.names[a.held[0].token] = req.Token
	for r := range mostRows {
		if a.held[0].rows.has(r) {
			operation := operationIDs[operations[r]]
			payload := fmt.Appendf(nil, `{"operation_id": %q, "state_version": %d}`, operation, versions[r])
			claim.Rows = append(claim.Rows, relay.Row{
				ID: int64(r + 1), OperationID: operation, CreatedAt: time.Now(), Type: "aksara.operation.transition",
				Payload: payload, Bytes: int64(len(payload)), Attempts: 1,
			})
		}
	}
	return claim, nil
}

// ClaimAll and SettleAll are not called: there is one scope.
func (c *conversation) ClaimAll(context.Context, []relay.Request) ([]relay.Claim, error) {
	c.Error("several claims at once")
	return nil, errFailed
}

func (c *conversation) SettleAll(context.Context, []relay.Settlement) ([][]relay.Result, error) {
	c.Error("several settlements at once")
	return nil, errFailed
}

// Commit sends events and an entry.
func (c *conversation) Commit(_ context.Context, e relay.Entry, events []envelope.Event, _ []envelope.DeadLetter) ([]error, error) {
	is := call{kind: commit, token: c.tokenOf(e.Token)}
	for _, event := range events {
		for r := range mostRows {
			if operationIDs[operations[r]] == event.OperationID && versions[r] == event.StateVersion {
				is.again |= is.marks & (1 << r)
				is.marks |= 1 << r
			}
		}
	}
	var named mask
	for _, id := range e.Rows[scope] {
		named |= 1 << (id - 1)
	}
	if named != is.marks || len(events) != len(e.Rows[scope]) {
		c.Errorf("the entry names%s, and sent are%s: %s", named, is.marks, c.question)
	}
	_, err := c.hear(is)
	return nil, err
}

// Close does nothing that could be seen.
func (c *conversation) Close() {}

// Settle writes verdicts.
func (c *conversation) Settle(_ context.Context, claim relay.Claim, verdicts []relay.Verdict) ([]relay.Result, error) {
	is := call{kind: settle, token: c.tokenOf(claim.Token)}
	if !claim.Exact || is.token == 0 {
		c.Errorf("a settlement of claim %q, exact %t: %s", claim.Token, claim.Exact, c.question)
	}
	for _, v := range verdicts {
		row := mask(1) << (v.Row.ID - 1)
		switch {
		case v.Exported:
			is.marks |= row
		case v.Wait != relay.Park && !v.DeadLettered:
			is.freed |= row
		default:
			c.Errorf("a verdict that nothing calls for: %+v", v)
		}
	}
	a, err := c.hear(is)
	if err != nil {
		return nil, err
	}
	results := make([]relay.Result, len(verdicts))
	for i, v := range verdicts {
		if a.held[0].rows.has(int(v.Row.ID - 1)) {
			results[i].Status = relay.Written
		}
	}
	return results, nil
}

// Due says that there may always be something to claim.
func (c *conversation) Due(_ context.Context, scopes []envelope.Scope) ([]time.Duration, error) {
	return make([]time.Duration, len(scopes)), nil
}

// Renew is not called in this mode.
func (c *conversation) Renew(context.Context, relay.Claim, []int64, time.Duration) ([]int64, error) {
	c.Error("a claim is renewed")
	return nil, errFailed
}

// Ready is always.
func (c *conversation) Ready(envelope.Scope) error { return nil }

// Publish is not called in this mode.
func (c *conversation) Publish(context.Context, []envelope.Event, func(int, error)) {
	c.Error("events are sent outside of a transaction")
}
