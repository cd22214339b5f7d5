package relay

import (
	"time"

	"outboxrelay/envelope"
)

// Observer is told what a relay does, for metrics and logs. Its methods are called
// from many goroutines at once and must return quickly. The relay itself logs nothing.
type Observer interface {
	// Claimed follows each claim, also one that found nothing.
	Claimed(claim Claim, took time.Duration)
	// Published follows each send: all events were answered, or the lease was over.
	Published(claim Claim, took time.Duration)
	// Settled follows each settlement; results belong to verdicts of the same index.
	Settled(claim Claim, verdicts []Verdict, results []Result, took time.Duration)
	// Released follows each claim that held rows, when the relay waits for no more
	// answers about them.
	Released(claim Claim)
	// Recovered follows each settlement of a claim whose outcome was looked up in the ledger:
	// its rows were marked, or released. It comes after Settled.
	Recovered(claim Claim, verdicts []Verdict)
	// Fenced follows each change of a slot's hands in exactly-once mode.
	Fenced(slot Slot, how Fencing)
	// Trouble tells of what an operator may have to mend. It repeats as long as the
	// trouble lasts, perhaps often.
	Trouble(Trouble)
}

// Fencing says how a slot changed hands: what its former holder had not committed never will be.
type Fencing uint8

const (
	// FencedOwn: this relay took a slot of its own, at its start and after each failure.
	FencedOwn Fencing = iota
	// FencedOther: this relay fenced another's slot, a claim of which had run out.
	FencedOther
	// FencedByOther: another relay took or fenced a slot of this one, or the brokers ended its
	// transaction.
	FencedByOther
)

// Trouble is something that keeps events from being relayed.
type Trouble struct {
	Kind  TroubleKind
	Scope envelope.Scope // whose events are concerned; zero if nobody's alone
	Row   int64          // the outbox row's id, for one row's trouble; else 0
	Err   error          // without secrets and payload
}

// TroubleKind says where trouble lies.
type TroubleKind uint8

const (
	// DatabaseTrouble: a claim or settlement failed. It is tried again.
	DatabaseTrouble TroubleKind = iota
	// SinkTrouble: the sink isn't ready for a scope, so nothing of it is claimed.
	SinkTrouble
	// RowTrouble: a row of the scope was parked.
	RowTrouble
	// LetterTrouble: a row of the scope went to the dead-letter topic.
	LetterTrouble
	// SendTrouble: events were not acknowledged and will be tried again.
	SendTrouble
	// ForeignClaims: another kind of exporter works on the same rows, so the order of
	// an operation's events is only what that one leaves of it.
	ForeignClaims
	// SlotTrouble: in exactly-once mode, a slot can't be taken or another's claims not decided.
	SlotTrouble
)

// Unobserved is an Observer that ignores everything.
type Unobserved struct{}

// Claimed does nothing.
func (Unobserved) Claimed(Claim, time.Duration) {}

// Published does nothing.
func (Unobserved) Published(Claim, time.Duration) {}

// Settled does nothing.
func (Unobserved) Settled(Claim, []Verdict, []Result, time.Duration) {}

// Released does nothing.
func (Unobserved) Released(Claim) {}

// Recovered does nothing.
func (Unobserved) Recovered(Claim, []Verdict) {}

// Fenced does nothing.
func (Unobserved) Fenced(Slot, Fencing) {}

// Trouble does nothing.
func (Unobserved) Trouble(Trouble) {}
