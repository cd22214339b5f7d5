package model

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

const namespace = "orders"

// outbox answers what claims, settlements and renewals do to a table by having
// [relaytest.Store] do them. It remembers, since the same tables come again and again.
type outbox struct {
	*testing.T
	store  *relaytest.Store
	layout layout
	events [2][]uuid.UUID // the operation of each row, before and after the restore

	claims  map[claimKey]claimed
	settles map[settleKey]table
	renews  map[renewKey]table
}

type (
	claimKey struct {
		rows  table
		limit int // abandoned for rows that were left behind
		ahead int // the operation whose rows have been due for longest
		by    owner
	}
	claimed struct {
		rows table
		took mask
	}
	settleKey struct {
		rows     table
		by       owner
		marks    uint8
		verdicts judgement
		reborn   mask // rows that the claim knows as they are after the restore
	}
	renewKey struct {
		rows  table
		by    owner
		marks uint8
		ids   mask
	}
)

func newOutbox(t *testing.T, l layout) *outbox {
	o := &outbox{
		T: t, store: &relaytest.Store{}, layout: l,
		claims: map[claimKey]claimed{}, settles: map[settleKey]table{}, renews: map[renewKey]table{},
	}
	for life := range o.events {
		operations := map[int]uuid.UUID{}
		for _, operation := range l {
			if _, ok := operations[operation]; !ok {
				operations[operation] = uuid.New()
			}
			o.events[life] = append(o.events[life], operations[operation])
		}
	}
	for _, operation := range o.events[0] {
		o.store.Add(namespace, envelope.NonTenant(), operation, 1)
	}
	return o
}

// A day behind a parked row, and any retry delay, as instants.
const (
	retryDelay = time.Minute
	day        = 24 * time.Hour
)

func life(reborn bool) int {
	if reborn {
		return 1
	}
	return 0
}

// token is what stands in claimed_by.
func token(by owner, marks uint8) string {
	return withMarks([...]string{
		"", "r/000000000000000a", "python", "r/0000000000000000", "r/0000000000000001", "r/0000000000000002",
	}[by], marks)
}

func withMarks(token string, marks uint8) string { return token + strings.Repeat("!", int(marks)) }

// load puts a table into the store.
func (o *outbox) load(rows table, ahead int) {
	at, i := o.store.Now(), 0
	o.store.Edit(func(r *relaytest.Stored) {
		from := &rows[i]
		r.Operation = o.events[life(from.reborn)][i]
		r.ClaimedBy, r.Expires = token(from.owner, from.marks), time.Time{}
		switch {
		case from.leased:
			r.Expires = at.Add(time.Hour)
		case from.owner != nobody:
			r.Expires = at.Add(-time.Second)
		}
		r.Due, r.Parked = at.Add(-time.Hour), from.due == parked
		switch {
		case from.due == soon:
			r.Due = at.Add(retryDelay)
		case from.due == aDay:
			r.Due = at.Add(day)
		case o.layout[i] == ahead:
			r.Due = at.Add(-2 * time.Hour)
		}
		r.Attempts, r.Exported, r.LastError = int(from.attempts), from.exported, ""
		i++
	})
}

// read gives the table that is in the store.
func (o *outbox) read() (rows table) {
	at := o.store.Now()
	for i, r := range o.store.Rows(envelope.NonTenant()) {
		to := &rows[i]
		to.reborn = r.Operation == o.events[1][i]
		id := strings.TrimRight(r.ClaimedBy, "!")
		for to.marks = uint8(len(r.ClaimedBy) - len(id)); token(to.owner, 0) != id; { //nolint:gosec // as few as claims
			to.owner++
		}
		to.leased = r.Expires.After(at)
		switch {
		case r.Parked:
			to.due = parked
		case r.Due.After(at.Add(day / 2)):
			to.due = aDay
		case r.Due.After(at):
			to.due = soon
		}
		to.attempts, to.exported = int8(r.Attempts), r.Exported //nolint:gosec // as small as the faults allow
	}
	return rows
}

// bare is a table without what only the model knows.
func bare(rows table) table {
	for i := range rows {
		rows[i].truth = truth{}
	}
	return rows
}

// dressed gives a bare table back what only the model knows.
func dressed(rows, from table) table {
	for i := range rows {
		rows[i].truth = from[i].truth
	}
	return rows
}

// claim has the store make a claim, and tells which rows it took.
func (o *outbox) claim(rows table, limit, ahead int, by owner) (table, mask) {
	key := claimKey{bare(rows), limit, ahead, by}
	if done, ok := o.claims[key]; ok {
		return dressed(done.rows, rows), done.took
	}
	o.load(key.rows, ahead)
	most := limit
	if limit == abandoned {
		most = len(rows)
	}
	c, err := o.store.Claim(context.Background(), relay.Request{
		Namespace: namespace, Scope: envelope.NonTenant(), Token: token(by, 0), Lease: relay.DefaultLease,
		Rows: most, Bytes: 1 << 20, Abandoned: limit == abandoned,
	})
	if err != nil {
		o.Fatal(err)
	}
	done := claimed{rows: o.read()}
	for _, r := range c.Rows {
		done.took |= 1 << (r.ID - 1)
	}
	o.claims[key] = done
	return dressed(done.rows, rows), done.took
}

// settle has the store write verdicts.
func (o *outbox) settle(rows table, by owner, marks uint8, what judgement, reborn mask) table {
	key := settleKey{bare(rows), by, marks, what, reborn}
	if done, ok := o.settles[key]; ok {
		return dressed(done, rows)
	}
	o.load(key.rows, -1)
	stored := o.store.Rows(envelope.NonTenant())
	var list []relay.Verdict
	for i, v := range what {
		if v != nothing {
			list = append(list, v.decode(&relay.Row{
				ID: stored[i].ID, OperationID: o.events[life(reborn.has(i))][i], CreatedAt: stored[i].Created,
			}))
		}
	}
	if _, err := o.store.Settle(context.Background(), relay.Claim{Scope: envelope.NonTenant(), Token: token(by, marks)}, list); err != nil {
		o.Fatal(err)
	}
	o.settles[key] = o.read()
	return dressed(o.settles[key], rows)
}

// renew has the store renew rows of a claim.
func (o *outbox) renew(rows table, by owner, marks uint8, which mask) table {
	key := renewKey{bare(rows), by, marks, which}
	if done, ok := o.renews[key]; ok {
		return dressed(done, rows)
	}
	o.load(key.rows, -1)
	var list []int64
	for i := range rows {
		if which.has(i) {
			list = append(list, int64(i+1))
		}
	}
	if _, err := o.store.Renew(context.Background(), relay.Claim{Scope: envelope.NonTenant(), Token: token(by, marks)}, list, time.Hour); err != nil {
		o.Fatal(err)
	}
	o.renews[key] = o.read()
	return dressed(o.renews[key], rows)
}
