package relay

import (
	"time"
)

// unburied is the verdict on a row whose letter was in a transaction that failed. If that was the
// letter's doing, no other is sent for a while, so that it does not keep events from being sent.
func (w *slotWorker) unburied(fault Verdict, why error) Verdict {
	if class := ClassOf(why); class == NotAttempted {
		return Verdict{Row: fault.Row, Wait: KeepDue, Refund: true}
	} else if class != RowFault {
		w.pause.close(why, w.policy)
	}
	v, _ := w.policy.letter(fault, why)
	return v
}

// letterPause is for when no dead letters are sent, since one of them made a transaction fail. It
// is not safe for concurrent use.
type letterPause struct {
	fails int // in a row
	until time.Time
	why   error
}

func (p *letterPause) closed() error {
	if time.Now().Before(p.until) {
		return p.why
	}
	return nil
}

func (p *letterPause) close(why error, by policy) {
	if p.closed() == nil {
		p.fails++
		p.why, p.until = why, time.Now().Add(by.jitter(growing(by.retry, by.maxRetry, p.fails)))
	}
}

func (p *letterPause) open() { *p = letterPause{} }
