package relay

import (
	"time"

	"github.com/google/uuid"
)

// behindParked is when a row behind a parked one is looked at again. Not never: at
// infinity nothing would find it after somebody ended the parking by hand.
const behindParked = 24 * time.Hour

// policy turns the answers of a sink into verdicts. It is the one place that knows
// what each class of answer writes.
type policy struct {
	retry, maxRetry time.Duration
	buries          bool           // what can't be sent goes to a dead-letter topic
	random          func() float64 // 0 to 1
}

// verdicts gives what is to be written about the rows of a claim, which are in
// ascending order, from the answer to each. Rows whose outcome is unknown get none,
// and neither do those that were answered before already (nil: none were).
//
// The first row of an operation that was not delivered decides for the rows behind
// it: they come due together with it, so that the operation is claimed as one run.
func (p policy) verdicts(rows []Row, answers, before []error) []Verdict {
	out := make([]Verdict, 0, len(rows))
	add := func(i int, v Verdict) {
		if before == nil || ClassOf(before[i]) == Unknown {
			out = append(out, v)
		}
	}
	behind := map[uuid.UUID]time.Duration{} // operation with an undelivered row -> wait of the rows behind
	for i := range rows {
		row := &rows[i]
		class := ClassOf(answers[i])
		wait, isBehind := behind[row.OperationID]
		switch {
		case class == Delivered:
			add(i, Verdict{Row: row, Exported: true})
		case class == Unknown:
			if !isBehind {
				behind[row.OperationID] = KeepDue
			}
		case isBehind:
			add(i, Verdict{Row: row, Wait: wait, Refund: true})
		default:
			v := p.undelivered(row, class, answers[i])
			add(i, v)
			behind[row.OperationID] = min(v.Wait, behindParked)
			if v.Wait == Park && p.buries {
				behind[row.OperationID] = KeepDue
			}
		}
	}
	return out
}

// undelivered is the verdict on the first undelivered row of an operation.
func (p policy) undelivered(row *Row, class Class, err error) Verdict {
	switch class {
	case RowFault:
		return Verdict{Row: row, Wait: Park, Error: errorText(err)}
	case Environment:
		return Verdict{Row: row, Wait: p.jitter(p.retry), Error: errorText(err)}
	case NotAttempted:
		return Verdict{Row: row, Wait: KeepDue, Refund: true}
	default:
		return Verdict{Row: row, Wait: p.jitter(growing(p.retry, p.maxRetry, row.Attempts)), Error: errorText(err)}
	}
}

// jitter multiplies by a random 0.5 to 1, so that rows that failed together don't
// come back together.
func (p policy) jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.5 + 0.5*p.random()))
}

// growing is first x 2^(n-1), at most longest, for the n-th failure in a row. It
// can't overflow, whatever n is.
func growing(first, longest time.Duration, n int) time.Duration {
	d := first
	for ; n > 1 && d < longest; n-- {
		if d > longest/2 {
			return longest
		}
		d *= 2
	}
	return min(d, longest)
}

// errorText makes an error's text storable, and never empty.
func errorText(err error) string {
	if text := StoredText(err.Error()); text != "" {
		return text
	}
	return "an error without a text"
}
