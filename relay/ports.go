package relay

import (
	"context"
	"math"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
)

// Row is one outbox row that a claim holds.
type Row struct {
	ID          int64 // ascending id is ascending state version within an operation
	OperationID uuid.UUID
	CreatedAt   time.Time // microseconds; outside the years 1 to 9999 if the column is infinite
	Type        string    // the topic column
	Payload     []byte    // as Postgres gives its text; nil if Bytes is more than the store reads, or behind more than [MostMarks]
	Bytes       int64     // size of the payload's text
	Attempts    int       // export_attempts, this claim's included

	// Expired is the claimed_by of a former claim that ran out, "" if there was none.
	Expired string

	// Err is why the store could not read the payload of a row that it has claimed, nil if it
	// did. It is dealt with like a sink's answer, by its class.
	Err error
}

// Claim is a lease on some rows of one scope. Settling presents it again, and the
// token makes sure that an owner whose claim was taken over changes nothing of the
// new owner's.
type Claim struct {
	Scope envelope.Scope
	Token string
	// Exact is that of the request.
	Exact bool

	// Expires is when the lease ends, by this process's monotonic clock. It is counted
	// from before the claim was sent, so it is never later than the database's instant.
	Expires time.Time

	// Rows are in ascending id order. They hold, for each operation, an unbroken run
	// from its first unexported row on. Empty if nothing could be taken.
	Rows []Row

	// Seen is how many due rows were looked at. Some may not have been claimable: behind
	// an earlier row of their operation, or of another namespace.
	Seen int
	// Pushed is how many of those were moved behind the due time of an earlier row of
	// their operation.
	Pushed int
	// More is true if the next claim may find rows at once: this one left some that it had
	// no room for or did not look at, or some may have come due behind it.
	More bool
	// Busy is true if nothing was looked at, because another claim of the scope was being made. That
	// says nothing of the scope.
	Busy bool
	// Abandoned is true if there are rows that a claim which ran out has left behind, for
	// claims of their own.
	Abandoned bool
}

// Request is what a claim is made with.
type Request struct {
	Namespace string // exact and case-sensitive
	Scope     envelope.Scope
	Token     string        // at most 255 characters, new for every claim; 6 less if Abandoned
	Lease     time.Duration // on the database's clock
	Rows      int           // most rows, 1 or more
	Limit     time.Duration // of what the server may take for it; 0 for as long as the store allows
	Bytes     int64         // most bytes of payload text; one row always fits

	// Exact asks only for rows that nobody has claimed: in exactly-once mode the ledger alone says
	// what became of a claim that ran out. Its settlement changes no row that it does not hold.
	Exact bool

	// Abandoned asks for rows that claims which ran out have left behind, if the store knows
	// of any. Other claims take no such rows: one of them may be what ended its owner.
	// [Claim.Token] is then Token with one mark, "!", more than stood behind the tokens
	// that ran out, which all had as many; marks are put there by claims like this, when the
	// store knows which rows they hold and before it reads those: a claim whose answer is
	// lost adds none. Behind one mark stand at most ten rows, behind more of them one row:
	// whichever it is that ends its owners will be alone, and others have got through by then.
	Abandoned bool
	// Wary leaves out, of those, the rows that would be alone. Only an end of who holds such a
	// row says something about it, and only if that process does not end often anyway.
	Wary bool
}

// AloneFrom is how many marks a row has that is claimed alone.
const AloneFrom = 2

// MostMarks is how many claims of abandoned rows may run out for a row: the last three of
// them held it alone. A claim that puts one mark more on it does not read its payload.
const MostMarks = 5

// Never is longer than any wait.
const Never = time.Duration(math.MaxInt64)

// Store is where outbox rows are claimed and settled. Implementations are safe for
// concurrent use. Every call is bounded by a time-out of its own besides ctx.
type Store interface {
	// Claim takes due rows of exactly one scope and namespace under a lease, in one
	// short transaction that is durable before it returns. It never waits for locks of
	// others, and its cost is bounded whatever rows lie in the scope: it may take none
	// and say that there are more. After an error the rows are either free or come back
	// when the lease ends; it has class [RowFault] if the database answered and refused, or took
	// too long. The rows belong to the caller.
	Claim(ctx context.Context, req Request) (Claim, error)

	// ClaimAll makes claims of scopes that differ, as Claim does each of them, all in one
	// transaction: after an error nothing is claimed, or nobody knows. A row with a large payload
	// may have an Err of class [NotAttempted] unless its claim is the only one.
	ClaimAll(ctx context.Context, reqs []Request) ([]Claim, error)

	// Due looks at several scopes, one after the other in one round trip, and says for each,
	// in the same order, how long it is until its first row comes due that nobody holds and
	// that isn't parked: 0 or less if there is such a row, [Never] if there is none. It is a
	// hint for when to claim: that row may stand behind another, or be of another namespace.
	Due(ctx context.Context, scopes []envelope.Scope) ([]time.Duration, error)

	// Settle writes verdicts on rows of the claim, all in one transaction, and says for
	// each, in the same order, what became of it. Rows without a verdict stay as they
	// are. It may be called again after an error, with the same verdicts: what was
	// written already is not written twice. An error has class [RowFault] if the database
	// answered and refused what was to be written: fewer rows may then go through.
	Settle(ctx context.Context, claim Claim, verdicts []Verdict) ([]Result, error)

	// SettleAll settles claims, as Settle does each of them, what was exported all in one
	// transaction.
	SettleAll(ctx context.Context, all []Settlement) ([][]Result, error)

	// Renew gives rows of the claim a new lease from now on, and tells which of them the
	// claim still held, in no order. The others it has lost. It takes the marks off the
	// token: who renews a claim was not ended by its rows. Whether they stand there makes
	// no difference to settlements and renewals.
	Renew(ctx context.Context, claim Claim, ids []int64, lease time.Duration) (held []int64, err error)
}

// Sink is where events go. Implementations are safe for concurrent use.
type Sink interface {
	// Ready is nil when events of the scope can be sent as far as is known, else what
	// stands in the way. It answers from memory and does not block. Nothing of a scope
	// that isn't ready is claimed; it is asked again at least once a second.
	Ready(scope envelope.Scope) error

	// Publish sends the events of one claim and calls answer once for each index, from
	// any goroutine, concurrently or not, during the call or after it returned.
	//
	// A nil answer says that all in-sync replicas have the event. The class of an error
	// ([ClassOf]) decides what becomes of the row; an error without a class is
	// [Failed]. An event whose outcome can't be known is answered with [Unknown], or
	// left unanswered as long as it can still become known.
	//
	// Events of one operation stand in ascending order. They are delivered in that
	// order, and once one of them was not delivered, no later one of its operation is
	// sent by this call: those are answered with [NotAttempted].
	//
	// ctx ends when the relay gives up on the answers, and Publish then returns soon:
	// [Relay.Run] waits for it. An event must not be reported as failed for that reason
	// unless it certainly was not sent. The events and their bytes must not be changed.
	Publish(ctx context.Context, events []envelope.Event, answer func(i int, err error))
}

// Topical may be implemented by a [Sink] that sends events of several scopes the same
// way. While none of a topic's events gets through, it is tried with one event at a
// time, whatever the number of scopes. Without it each scope counts as a topic.
type Topical interface {
	Topic(scope envelope.Scope) string
}

func topicOf(sink Sink) func(envelope.Scope) string {
	if t, ok := sink.(Topical); ok {
		return t.Topic
	}
	return envelope.Scope.String
}

// Verdict is what is to be written about one row.
type Verdict struct {
	Row      *Row
	Exported bool // all in-sync replicas have the event; nothing below counts then

	// Wait is from the database's now until the row is due again; [KeepDue] leaves its
	// due time as it is, [Park] sets it to infinity.
	Wait   time.Duration
	Error  string // for last_error; "" keeps what is there
	Refund bool   // the claim's attempt is given back: the event was never sent

	// DeadLettered gives the row up: it counts as exported, with Error, and the rest of its
	// operation is due at once.
	DeadLettered bool
}

// Special values of [Verdict.Wait].
const (
	KeepDue time.Duration = -1
	Park    time.Duration = 1<<63 - 1
)

// Settlement is what is to be written about rows of a claim.
type Settlement struct {
	Claim    Claim
	Verdicts []Verdict
	Limit    time.Duration // of what the server may take for it; 0 for as long as the store allows
}

// Result is what became of one verdict.
type Result struct {
	Status Status
	// Lag is created_at to exported_at on the database's clock, for rows that this
	// call marked exported.
	Lag time.Duration
}

// Status says how a verdict ended.
type Status uint8

const (
	// Lost: the claim no longer held the row and nothing was written. It was taken
	// over, exported by somebody else, or deleted.
	Lost Status = iota
	// Written: the claim held the row and the verdict was written.
	Written
	// MarkedLate: the claim had lost the row, which was still unexported; since the
	// event was delivered it is marked, and nothing of the new owner's was touched.
	MarkedLate
)
