package relay

import (
	"context"
	"errors"

	"outboxrelay/envelope"
)

// ExactlyOnce is what [Relay.Run] needs to deliver each event exactly once to consumers that
// read committed records only: each claim in one transaction of the sink, together with an
// entry in a ledger that says which claim was committed last.
type ExactlyOnce struct {
	// Prefix is that of the transactional ids. It belongs to one set of rows.
	Prefix string
	// Instance is this relay's number, unique among those that share the rows.
	Instance int
	// Sink and Store are what the relay's sink and store can besides.
	Sink  Transactions
	Store ExactStore
}

// Entry is what the ledger says of a slot: the claim that was committed last.
type Entry struct {
	Token  string
	Source string                     // identity of the database and namespace that its rows are in
	Rows   map[envelope.Scope][]int64 // those of the claim
	// Letters tells of the rows of which dead letters were sent, by their ids, why they could not
	// be sent as they are. A long reason may have been cut.
	Letters map[int64]string
}

// Transactions is the sink of exactly-once mode. Implementations are safe for concurrent use.
type Transactions interface {
	// Open takes a slot. When it returns, nobody who held it before can commit anything any
	// more: what was under way has been committed or aborted.
	Open(ctx context.Context, slot Slot) (Session, error)
	// Fence ends what the holder of a slot has under way, as Open does, and takes it for nobody.
	Fence(ctx context.Context, slot Slot) error
	// Last gives a slot's last committed entry; ok is false if there is none. It must be asked
	// after Open or Fence: what is committed later is not in it. An error says nothing.
	Last(ctx context.Context, slot Slot) (entry Entry, ok bool, err error)
	// Entries gives an entry of each slot with a prefix that has one, whoever holds it: the last
	// committed, or one that was so a moment ago. One that lies behind very many of other prefixes
	// may be left out. So nothing may be decided by it.
	Entries(ctx context.Context, prefix string) (map[Slot]Entry, error)
}

// ErrFenced is in an error of a session that has lost its slot to somebody who took or fenced it,
// or whose transaction the brokers have ended because it took too long.
var ErrFenced = errors.New("the slot was taken or fenced by another relay, or the transaction ended by the brokers")

// ErrForgetful is why nothing is claimed while commits don't outlive a crash: what was claimed then could be claimed again.
var ErrForgetful = errors.New("nothing may be claimed")

// Session is a slot that is held. It is not safe for concurrent use.
type Session interface {
	// Commit sends events, dead letters and an entry in one transaction. Only if err is nil all of
	// them are committed; then answers is nil. Else nothing is known, the session is of no more
	// use, and answers, if not nil, says for each event, and then for each letter, why it was not
	// sent or acknowledged, with a class as [Sink.Publish] gives it.
	Commit(ctx context.Context, entry Entry, events []envelope.Event, letters []envelope.DeadLetter) (answers []error, err error)
	// Close gives the session up. What it has under way is aborted when the slot is taken next.
	Close()
}

// ExactStore is what a [Store] can besides in exactly-once mode. Its claims with [Request.Exact]
// and their settlements are durable when they return, as far as the server keeps that; see Durable.
type ExactStore interface {
	// Held tells which claims hold rows of some scopes, expired or not, in one round trip. It
	// looks at the rows that came due first, some ten thousand of each scope.
	Held(ctx context.Context, scopes []envelope.Scope) ([]Held, error)
	// Durable is nil if what is committed outlives a crash of the database's machine. There is [ErrForgetful] in the error if
	// it does not.
	Durable(ctx context.Context) error
	// Identity names the database and the place in it that the rows are in.
	Identity(ctx context.Context) (string, error)
}

// Held is what a claim holds of a scope.
type Held struct {
	Scope   envelope.Scope
	Token   string // claimed_by
	Rows    []int64
	Expired bool // its lease is over
}
