package relay

import (
	"context"
	"errors"

	"outboxrelay/envelope"
)

// DeadLetters is where events go that can't be delivered as they are. Implementations
// are safe for concurrent use.
type DeadLetters interface {
	// Bury sends letters and gives, for each, nil when all in-sync replicas have it, else
	// an error with a class as [Sink.Publish] gives it. It returns when all are answered
	// or ctx has ended; what has no answer then is [Unknown].
	Bury(ctx context.Context, letters []envelope.DeadLetter) []error
}

// splitFaulty parts the verdicts on rows that can't be sent as they are from the others.
func splitFaulty(verdicts []Verdict) (others, faulty []Verdict) {
	for _, v := range verdicts {
		if v.Wait == Park && !v.Exported {
			faulty = append(faulty, v)
		} else {
			others = append(others, v)
		}
	}
	return others, faulty
}

// letters makes the dead letters of faulty rows.
func (r *Relay) letters(claim Claim, faulty []Verdict) []envelope.DeadLetter {
	letters := make([]envelope.DeadLetter, len(faulty))
	for i, v := range faulty {
		letters[i] = envelope.DeadLetter{
			Namespace: r.cfg.Namespace, Scope: claim.Scope, OperationID: v.Row.OperationID, Type: v.Row.Type,
			Created: v.Row.CreatedAt, Data: v.Row.Payload, Bytes: v.Row.Bytes, Attempts: v.Row.Attempts, Reason: v.Error,
		}
	}
	return letters
}

// bury sends faulty rows to the dead-letter topic, and gives the verdicts on them. There is
// none on one whose letter has no answer: its claim runs out, and another letter is sent.
func (r *Relay) bury(ctx context.Context, letters []envelope.DeadLetter, faulty []Verdict) (verdicts []Verdict) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.DeliveryTimeout)
	defer cancel()
	for i, err := range r.cfg.DeadLetters.Bury(ctx, letters) {
		if v, ok := r.policy.letter(faulty[i], err); ok {
			verdicts = append(verdicts, v)
		}
	}
	return verdicts
}

// letter turns the answer to a dead letter into the verdict on its row.
func (p policy) letter(v Verdict, err error) (Verdict, bool) {
	switch ClassOf(err) {
	case Delivered:
		return deadLettered(v), true
	case Unknown:
		return v, false
	case RowFault: // not even that: parked
	case Environment, Failed, NotAttempted:
		v.Wait = p.jitter(growing(p.retry, p.maxRetry, v.Row.Attempts))
	}
	v.Error = errorText(errors.New(v.Error + "; and its dead letter: " + err.Error()))
	return v, true
}

// deadLettered is the verdict on a faulty row whose letter was delivered.
func deadLettered(v Verdict) Verdict {
	v.DeadLettered, v.Wait, v.Error = true, KeepDue, StoredText("dead-lettered: "+v.Error)
	return v
}
