package exactmodel

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

// outbox answers what claims and settlements do to the rows by having [relaytest.Store] do them,
// which a suite shared with the SQL holds to the same contract. It remembers.
type outbox struct {
	*testing.T
	store   relaytest.Store
	claims  map[claimKey]written
	settles map[settleKey]written
}

type table = [mostRows]row

type (
	claimKey struct {
		rows  table
		by    token
		limit int
		ahead int // the operation whose rows have been due for longest
	}
	settleKey struct {
		rows         table
		by           token
		marks, freed mask
	}
	written struct {
		rows  table
		which mask
	}
)

func newOutbox(t *testing.T) *outbox {
	o := &outbox{T: t, claims: map[claimKey]written{}, settles: map[settleKey]written{}}
	for _, operation := range operations {
		o.store.Add(namespace, scope, operationIDs[operation], 1)
	}
	return o
}

func claimedBy(t token) string {
	if t == 0 {
		return ""
	}
	return t.String()
}

func (o *outbox) load(rows table, ahead int) {
	now, i := o.store.Now(), 0
	o.store.Edit(func(r *relaytest.Stored) {
		r.ClaimedBy, r.Expires = claimedBy(rows[i].owner), time.Time{}
		switch {
		case rows[i].owner == 0:
		case rows[i].expired:
			r.Expires = now.Add(-time.Second)
		default:
			r.Expires = now.Add(time.Hour)
		}
		r.Due = now.Add(-time.Hour)
		if operations[i] == ahead {
			r.Due = now.Add(-2 * time.Hour)
		}
		r.Exported, r.Attempts = rows[i].exported, 0
		i++
	})
}

// read gives the rows as the store has them. Delays pass at once.
func (o *outbox) read(was table, by token) (rows table) {
	for i, r := range o.store.Rows(scope) {
		rows[i] = row{exported: r.Exported, visible: was[i].visible}
		switch r.ClaimedBy {
		case "":
		case claimedBy(was[i].owner):
			rows[i].owner, rows[i].expired = was[i].owner, was[i].expired
		default:
			rows[i].owner = by
		}
	}
	return rows
}

// claim has the store make a claim, and tells which rows it took.
func (o *outbox) claim(rows table, by token, limit, ahead int) (table, mask) {
	key := claimKey{rows, by, limit, ahead}
	if done, ok := o.claims[key]; ok {
		return done.rows, done.which
	}
	o.load(rows, ahead)
	c, err := o.store.Claim(context.Background(), relay.Request{
		Namespace: namespace, Scope: scope, Token: claimedBy(by), Lease: time.Hour, Rows: limit, Bytes: 1 << 20, Exact: true,
	})
	if err != nil {
		o.Fatal(err)
	}
	done := written{rows: o.read(rows, by)}
	for _, r := range c.Rows {
		done.which |= 1 << (r.ID - 1)
	}
	o.claims[key] = done
	return done.rows, done.which
}

// settle has the store write verdicts, and tells of which rows it did.
func (o *outbox) settle(rows table, by token, marks, freed mask) (table, mask) {
	key := settleKey{rows, by, marks, freed}
	if done, ok := o.settles[key]; ok {
		return done.rows, done.which
	}
	o.load(rows, -1)
	var verdicts []relay.Verdict
	for _, id := range ids(marks | freed) {
		// Who recovers a claim knows no more of a row than its id.
		verdicts = append(verdicts, relay.Verdict{Row: &relay.Row{ID: id, OperationID: uuid.Nil}, Exported: marks.has(int(id - 1)), Wait: relay.KeepDue})
	}
	results, err := o.store.Settle(context.Background(), relay.Claim{Scope: scope, Token: claimedBy(by), Exact: true}, verdicts)
	if err != nil {
		o.Fatal(err)
	}
	done := written{rows: o.read(rows, 0)}
	for i, result := range results {
		if result.Status == relay.Written {
			done.which |= 1 << (verdicts[i].Row.ID - 1)
		}
	}
	o.settles[key] = done
	return done.rows, done.which
}
