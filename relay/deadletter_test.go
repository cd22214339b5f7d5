package relay_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

// graveyard takes dead letters and answers each with the next error, nil after the last.
type graveyard struct {
	mu      sync.Mutex
	errs    []error
	letters []envelope.DeadLetter
}

func (g *graveyard) Bury(_ context.Context, letters []envelope.DeadLetter) []error {
	g.mu.Lock()
	defer g.mu.Unlock()
	errs := make([]error, len(letters))
	for i := range letters {
		if len(g.errs) > 0 {
			errs[i], g.errs = g.errs[0], g.errs[1:]
		}
	}
	g.letters = append(g.letters, letters...)
	return errs
}

func (g *graveyard) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.letters)
}

// refusing makes the sink refuse one version of an operation.
func (f *fixture) refusing(operation uuid.UUID, version int64) {
	f.sink.Handle = func(_ context.Context, send *relaytest.Send) {
		refused := false
		for i, e := range send.Events {
			switch {
			case e.OperationID == operation && e.StateVersion == version:
				refused = true
				send.Answer(i, relay.RowFault.Wrap(errors.New("too large")))
			case e.OperationID == operation && refused:
				send.Answer(i, relay.NotAttempted.Wrap(errors.New("behind")))
			default:
				send.Answer(i, nil)
			}
		}
	}
}

// TestDeadLetter: what can't be sent goes to the dead-letter topic, counts as exported
// after that, and the rest of its operation goes on at once.
func TestDeadLetter(t *testing.T) {
	bubble(t, func(f *fixture) {
		letters := &graveyard{}
		f.config.DeadLetters = letters
		f.make()
		acme := f.scope("acme")
		operation, other := f.operation(acme, 3), f.operation(acme, 2)
		f.refusing(operation, 2)
		stop := f.start(acme)
		f.await("all is exported", f.drained(acme))
		if took := f.store.Now().Sub(f.row(acme, 0).Created); took > time.Second {
			t.Errorf("it took %s, want the rest of the operation to go on at once", took)
		}
		stop()
		f.deliveredOnce(other, 2)
		if got := f.versions(operation); len(got) != 2 || got[0] != 1 || got[1] != 3 {
			t.Errorf("versions %v were delivered, want 1 and 3", got)
		}
		if letters.count() != 1 {
			t.Fatalf("%d letters, want 1", letters.count())
		}
		row, letter := f.row(acme, 1), letters.letters[0]
		if row.LastError != "dead-lettered: too large" || row.ClaimedBy != "" {
			t.Errorf("%v, want it dead-lettered", row)
		}
		if letter.OperationID != operation || letter.Scope != acme || letter.Namespace != namespace || letter.Reason != "too large" ||
			letter.Attempts != 1 || string(letter.Data) != string(row.Payload) {
			t.Errorf("letter %+v, want the row's", letter)
		}
		if n, err := f.tally.trouble(relay.LetterTrouble); n != 1 || !strings.Contains(err.Error(), "too large") {
			t.Errorf("told of %d letters, the last: %v", n, err)
		}
	})
}

// TestDeadLetterFails: nothing is given up before its letter has arrived, and the rest of
// the operation waits for that.
func TestDeadLetterFails(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		parked bool
	}{
		"no leader":     {relay.Environment.Wrap(errors.New("no leader")), false},
		"some error":    {errors.New("no"), false},
		"not sent":      {relay.NotAttempted.Wrap(errors.New("not ready")), false},
		"no answer":     {relay.Unknown.Wrap(errors.New("client closed")), false},
		"too large too": {relay.RowFault.Wrap(errors.New("larger still")), true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				letters := &graveyard{errs: []error{c.err}}
				f.config.DeadLetters = letters
				f.make()
				acme := f.scope("acme")
				operation := f.operation(acme, 2)
				f.refusing(operation, 1)
				stop := f.start(acme)
				time.Sleep(time.Second)
				row := f.row(acme, 0)
				if row.Exported || f.row(acme, 1).Exported || row.Parked != c.parked {
					t.Fatalf("%v, want it kept, parked %t", row, c.parked)
				}
				if name != "no answer" && (!strings.HasPrefix(row.LastError, "too large; and its dead letter: ") || !strings.HasSuffix(row.LastError, c.err.Error())) {
					t.Errorf("last error %q, want both reasons", row.LastError)
				}
				if !c.parked {
					f.await("all is exported", f.drained(acme))
					if n := letters.count(); n != 2 {
						t.Errorf("%d letters were sent, want 2", n)
					}
				}
				stop()
			})
		})
	}
}

// TestExportOnceWithDeadLetter: it is no success, and says what became of the event.
func TestExportOnceWithDeadLetter(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.config.DeadLetters = &graveyard{}
		f.make()
		acme := f.scope("acme")
		f.refusing(f.operation(acme, 1), 1)
		outcome, err := f.relay.ExportOnce(f.Context(), acme)
		if outcome != relay.SinkFailed || err == nil || !f.row(acme, 0).Exported {
			t.Errorf("%v, %v; row %v", outcome, err, f.row(acme, 0))
		}
	})
}
