package relay

import (
	"context"
	"errors"
	"slices"
	"time"

	"outboxrelay/envelope"
)

// mostLetters is how many dead letters go into one transaction.
const mostLetters = 100

// sent is what of one claim goes into a transaction: events, and letters for what can't be sent as
// it is.
type sent struct {
	claim   Claim
	events  []envelope.Event
	letters []envelope.DeadLetter
	rows    []*Row    // of the events, then of the letters
	faults  []Verdict // on the rows of the letters
}

// committed is what is to be written of the rows when the transaction was committed.
func (s sent) committed(p policy) []Verdict {
	verdicts := make([]Verdict, 0, len(s.rows))
	for _, row := range s.rows[:len(s.events)] {
		verdicts = append(verdicts, Verdict{Row: row, Exported: true})
	}
	for _, fault := range s.faults {
		v, _ := p.letter(fault, nil)
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// transaction is what goes into one.
type transaction []sent

// prepare makes events of claims. Rows that can't become events, and for which there is no letter,
// are settled before anything is sent: what is claimed when the transaction commits must be what
// is in it. ok is false if that could not be written of one of them.
func (w *slotWorker) prepare(ctx context.Context, claims []Claim) (all transaction, ok bool) {
	letters := 0
	for _, claim := range claims {
		w.condemned.mark(claim.Rows)
		a := newAnswers(len(claim.Rows))
		events, index := w.events(claim, a)
		s := sent{claim: claim, events: events}
		for _, i := range index {
			s.rows = append(s.rows, &claim.Rows[i])
		}
		verdicts := w.policy.verdicts(claim.Rows, a.snapshot(), nil)
		if w.policy.buries {
			var faulty []Verdict
			verdicts, faulty = splitFaulty(verdicts)
			verdicts = append(verdicts, w.addLetters(&s, faulty, mostLetters-letters)...)
			letters += len(s.letters)
		}
		if len(verdicts) > 0 {
			if err := w.settleHeld(ctx, claim, verdicts); err != nil {
				w.failed(claim.Scope, err)
				return nil, false
			}
		}
		if len(s.rows) == 0 {
			w.scheduler.undecided(claim.Scope)
			continue
		}
		all = append(all, s)
	}
	return all, true
}

// addLetters adds dead letters of faulty rows, and gives the verdicts on those that have to wait:
// because there are too many, or because no letter gets through.
func (w *slotWorker) addLetters(s *sent, faulty []Verdict, room int) (others []Verdict) {
	if why := w.pause.closed(); why != nil {
		for _, v := range faulty {
			v, _ = w.policy.letter(v, why)
			others = append(others, v)
		}
		return others
	}
	n := min(len(faulty), max(room, 0))
	for _, v := range faulty[n:] {
		others = append(others, Verdict{Row: v.Row, Wait: KeepDue, Refund: true})
	}
	s.faults, s.letters = faulty[:n], w.letters(s.claim, faulty[:n])
	for _, v := range s.faults {
		s.rows = append(s.rows, v.Row)
	}
	return others
}

// entry is what the ledger is to say of a transaction.
func (all transaction) entry(source string) Entry {
	entry := Entry{Token: all[0].claim.Token, Source: source, Rows: map[envelope.Scope][]int64{}, Letters: map[int64]string{}}
	for _, s := range all {
		for _, row := range s.rows {
			entry.Rows[s.claim.Scope] = append(entry.Rows[s.claim.Scope], row.ID)
		}
		for _, v := range s.faults {
			entry.Letters[v.Row.ID] = v.Error
		}
	}
	return entry
}

// send commits all events and letters, and the entry that says so. After an error answers are
// those of all events and then of all letters, in their order, or nil.
func (all transaction) send(ctx context.Context, w *slotWorker) (answers []error, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	need := w.cfg.DeliveryTimeout + leaseMargin
	var events []envelope.Event
	var letters []envelope.DeadLetter
	for _, s := range all {
		if time.Until(s.claim.Expires) < need {
			return nil, notEnoughLease(need)
		}
		events, letters = append(events, s.events...), append(letters, s.letters...)
	}
	source, err := w.source(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, w.cfg.DeliveryTimeout, errTransactionLimit)
	defer cancel()
	return w.session.Commit(ctx, all.entry(source), events, letters)
}

var errTransactionLimit = Environment.Wrap(errors.New("the transaction was not committed within the delivery time-out"))

// blame decides what is to be written of the rows of a transaction that failed, if it turns out
// not to be committed, and tells the scheduler whose topic is in trouble.
func (w *slotWorker) blame(all transaction, answers []error, why error, start time.Time) {
	w.verdicts = map[int64]Verdict{}
	events, letters := all.share(charge(answers, all.size(), why))
	for i, s := range all {
		w.condemn(s.rows[:len(s.events)], events[i])
		rows := make([]Row, len(s.events))
		for n := range rows {
			rows[n] = *s.rows[n]
		}
		verdicts := w.policy.verdicts(rows, events[i], nil)
		for n, fault := range s.faults {
			verdicts = append(verdicts, w.unburied(fault, letters[i][n]))
		}
		for _, v := range verdicts {
			w.verdicts[v.Row.ID] = v
		}
		w.tell(s.claim, verdicts)
		w.blameTopic(s.claim.Scope, events[i], start)
	}
}

// charge says of each record of a transaction why it was not delivered: those that made it fail
// are charged with that, and the others were not attempted. Those are the ones that were refused;
// if none was, those without an answer; if there is none, all.
func charge(answers []error, n int, why error) []error {
	reason := why
	if ClassOf(why) != NotAttempted {
		reason = Environment.Wrap(why)
	}
	charged := slices.Repeat([]error{reason}, n)
	refused, silent := slices.ContainsFunc(answers, isGuilty), slices.ContainsFunc(answers, isUnknown)
	for i := range answers {
		switch {
		case refused && isGuilty(answers[i]):
			charged[i] = answers[i]
		case refused, silent && !isUnknown(answers[i]):
			charged[i] = errAborted
		}
	}
	return charged
}

var errAborted = NotAttempted.Wrap(errors.New("another event of its transaction was not delivered"))

// isGuilty is true for an answer that says why a transaction failed.
func isGuilty(err error) bool {
	switch ClassOf(err) {
	case RowFault, Failed, Environment:
		return true
	case Delivered, NotAttempted, Unknown:
	}
	return false
}

// size is how many events and letters there are.
func (all transaction) size() (n int) {
	for _, s := range all {
		n += len(s.rows)
	}
	return n
}

// share parts answers to all events, then all letters, among the claims.
func (all transaction) share(answers []error) (events, letters [][]error) {
	for _, s := range all {
		events, answers = append(events, answers[:len(s.events)]), answers[len(s.events):]
	}
	for _, s := range all {
		letters, answers = append(letters, answers[:len(s.letters)]), answers[len(s.letters):]
	}
	return events, letters
}

// blameTopic tells the scheduler what the answers to a scope's events say of its topic.
func (w *slotWorker) blameTopic(scope envelope.Scope, answers []error, start time.Time) {
	if slices.ContainsFunc(answers, func(err error) bool { return ClassOf(err) == Environment }) {
		w.scheduler.delivered(scope, false, start, w.policy.jitter)
	} else {
		w.scheduler.undecided(scope)
	}
}
