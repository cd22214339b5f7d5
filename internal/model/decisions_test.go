package model

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

// verdict is a [relay.Verdict] as far as it matters.
type verdict uint8

const (
	nothing verdict = iota
	export
	park
	delay
	delayADay
	keepDue
	bury
	refund verdict = 8 // added to one of the others
)

// judgement is a verdict on each row of a claim.
type judgement = [mostRows]verdict

func encode(v relay.Verdict) (code verdict) {
	switch {
	case v.Exported:
		return export
	case v.DeadLettered:
		return bury
	case v.Wait == relay.Park:
		code = park
	case v.Wait == relay.KeepDue:
		code = keepDue
	case v.Wait >= day/2:
		code = delayADay
	default:
		code = delay
	}
	if v.Refund {
		code += refund
	}
	return code
}

func (v verdict) decode(row *relay.Row) relay.Verdict {
	wait := [...]time.Duration{0, 0, relay.Park, retryDelay, day, relay.KeepDue, relay.KeepDue}
	return relay.Verdict{Row: row, Exported: v == export, DeadLettered: v == bury, Wait: wait[v&^refund], Refund: v&refund != 0}
}

// question is what a relay is asked: what does it do with a claim of these rows, of
// which those answers were dealt with before, and these are there now?
type question struct {
	rows        mask
	former      uint8 // marks of the claims that ran out before it
	before, now [mostRows]answer
	late        bool   // the new answers come when the lease is over
	short       bool   // too little of the lease is left for a send
	letter      answer // to letters to the dead-letter topic; absent if there is none
}

// decision is what it did.
type decision struct {
	sent     mask      // rows whose events it handed to the sink
	verdicts judgement // that it had written after the new answers
}

// decisions asks a [relay.Relay] through its ports, in virtual time, and remembers.
type decisions struct {
	*testing.T
	layout  layout
	answers map[question]decision
}

func newDecisions(t *testing.T, l layout) *decisions {
	return &decisions{T: t, layout: l, answers: map[question]decision{}}
}

func (d *decisions) ask(q question) decision {
	if answer, ok := d.answers[q]; ok {
		return answer
	}
	var answer decision
	synctest.Test(d.T, func(t *testing.T) {
		c := newConversation(t, d.layout, q)
		c.run()
		answer = c.decision
	})
	d.answers[q] = answer
	return answer
}

// conversation is one claim of a real relay, of which the model is both ports.
type conversation struct {
	*testing.T
	relay.Unobserved
	relaytest.Store
	question
	decision

	index    map[uuid.UUID][]int // rows of an operation
	claimed  bool
	asked    atomic.Bool   // the answers after before were given
	handed   atomic.Int64  // events that the sink was given
	released chan struct{} // closed when the relay's worker waits for no more answers
}

func newConversation(t *testing.T, l layout, q question) *conversation {
	c := &conversation{T: t, question: q, index: map[uuid.UUID][]int{}, released: make(chan struct{})}
	operations := map[int]uuid.UUID{}
	last := map[int]int{} // the operation's last row in the claim
	for i, operation := range l {
		if operations[operation] == uuid.Nil {
			operations[operation] = uuid.New()
		}
		id := operations[operation]
		c.index[id] = append(c.index[id], i)
		c.Add(namespace, envelope.NonTenant(), id, 1)
		if q.rows.has(i) {
			last[operation] = i
		}
	}
	i := 0
	c.Edit(func(r *relaytest.Stored) {
		end, ok := last[l[i]]
		switch {
		case q.rows.has(i):
		case ok && i < end: // one that was exported before
			r.Exported = true
		default:
			r.Due = r.Due.Add(365 * day)
		}
		i++
	})
	return c
}

func (c *conversation) run() {
	cfg := relay.Config{Namespace: namespace, Workers: 1, PollInterval: time.Hour}
	if c.letter != absent {
		cfg.DeadLetters = c
	}
	r, err := relay.New(cfg, c, c, c)
	if err != nil {
		c.Fatal(err)
	}
	r.SetScopes([]envelope.Scope{envelope.NonTenant()})
	ctx, stop := context.WithTimeout(c.Context(), time.Hour)
	defer stop()
	if err := r.Run(ctx); err != nil {
		c.Error(err)
	}
}

// Claim lets one claim through.
func (c *conversation) Claim(ctx context.Context, req relay.Request) (relay.Claim, error) {
	if c.claimed {
		return relay.Claim{Scope: req.Scope, Token: req.Token, Expires: time.Now().Add(req.Lease)}, nil
	}
	c.claimed = true
	claim, err := c.Store.Claim(ctx, req)
	var took mask
	for _, r := range claim.Rows {
		took |= 1 << (r.ID - 1)
	}
	if err != nil || took != c.rows {
		c.Fatalf("the claim took rows %05b (%v), want %05b", took, err, c.rows)
	}
	for i := range claim.Rows {
		if c.former > 0 {
			claim.Rows[i].Expired = token(gone, c.former)
		}
	}
	if c.short {
		claim.Expires = time.Now().Add(relay.DefaultDeliveryTimeout)
	}
	return claim, nil
}

// Settle notes what is written after the new answers.
func (c *conversation) Settle(ctx context.Context, claim relay.Claim, list []relay.Verdict) ([]relay.Result, error) {
	for _, v := range list {
		if c.afterNew() {
			c.verdicts[v.Row.ID-1] = encode(v)
		}
	}
	return c.Store.Settle(ctx, claim, list)
}

// afterNew is true when what the relay does now follows from the new answers.
func (c *conversation) afterNew() bool { return c.asked.Load() || c.handed.Load() == 0 }

// Bury answers letters.
func (c *conversation) Bury(_ context.Context, letters []envelope.DeadLetter) []error {
	errs := make([]error, len(letters))
	for i := range errs {
		if c.afterNew() {
			c.give(c.letter, func(err error) { errs[i] = err })
		}
	}
	return errs
}

// Released tells that the lease is over, or all is answered.
func (c *conversation) Released(relay.Claim) { close(c.released) }

// Ready is always.
func (c *conversation) Ready(envelope.Scope) error { return nil }

// Publish gives the answers of before, and when they are settled those of now.
func (c *conversation) Publish(_ context.Context, events []envelope.Event, answer func(int, error)) {
	rows := make([]int, len(events))
	for i, e := range events {
		rows[i] = c.index[e.OperationID][e.StateVersion-1]
		c.sent |= 1 << rows[i]
	}
	c.handed.Store(int64(len(events)))
	for i := range events {
		c.give(c.before[rows[i]], func(err error) { answer(i, err) })
	}
	time.Sleep(3 * time.Second / 2)
	if c.late {
		<-c.released
	}
	c.asked.Store(true)
	for i := range events {
		if !c.before[rows[i]].final() {
			c.give(c.now[rows[i]], func(err error) { answer(i, err) })
		}
	}
}

func (c *conversation) give(a answer, answer func(error)) {
	why := errors.New("why")
	switch a {
	case delivered:
		answer(nil)
	case rowFault:
		answer(relay.RowFault.Wrap(why))
	case environment:
		answer(relay.Environment.Wrap(why))
	case failed:
		answer(why)
	case notAttempted:
		answer(relay.NotAttempted.Wrap(why))
	case unknown:
		answer(relay.Unknown.Wrap(why))
	}
}
