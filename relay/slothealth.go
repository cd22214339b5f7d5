package relay

import (
	"errors"
	"slices"
	"sync"
)

// SlotsHealth tells of the slots of a relay in exactly-once mode.
type SlotsHealth struct {
	Held    int   // those that were taken when that was last tried
	Waiting int   // those that were not, and are tried again
	Stuck   int   // of Waiting, those of which it takes a person to tell what was committed
	Err     error // why none is held, if so
}

// slotHealth knows which slots could not be taken when that was last tried.
type slotHealth struct {
	mu   sync.Mutex
	errs []error
}

func (h *slotHealth) expect(slots int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs = slices.Repeat([]error{errSlotNotTaken}, slots)
}

func (h *slotHealth) set(slot int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs[slot] = err
}

func (h *slotHealth) health() (all SlotsHealth) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, err := range h.errs {
		if err == nil {
			all.Held++
			continue
		}
		all.Waiting++
		if errors.As(err, new(undecidable)) {
			all.Stuck++
		}
	}
	if all.Held == 0 && all.Waiting > 0 {
		all.Err = h.errs[0]
	}
	return all
}

var errSlotNotTaken = errors.New("no slot has been taken yet")
