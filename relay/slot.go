package relay

import (
	"fmt"
	"strconv"
	"strings"
)

// SlotsPerInstance is how many slots, and partitions of the ledger, belong to one instance.
const SlotsPerInstance = 8

// maxInstance is the highest instance number; one of more digits in a token is not ours.
const maxInstance = 999

// Slot is a place for one worker in exactly-once mode: a transactional id of its own, with
// a partition of the ledger of its own.
type Slot struct {
	ID        string // the transactional id: prefix, instance and worker, with - between them
	Partition int32  // of the ledger topic
}

// SlotOf is the slot of an instance's worker.
func SlotOf(prefix string, instance, worker int) Slot {
	return Slot{ID: fmt.Sprintf("%s-%d-%d", prefix, instance, worker), Partition: int32(instance*SlotsPerInstance + worker)}
}

// newToken is a token for a claim by the holder of a slot, never used before.
func (s Slot) newToken() string {
	return s.ID + slotMark + newNonce()
}

// slotMark stands between a slot's id and what makes a token of it.
const slotMark = "#"

// first is the token of the entry that a slot's ledger begins with.
func (s Slot) first() string { return s.ID + slotMark + "init" }

// slotOfToken is the slot in which a token was made, if that has the prefix.
func slotOfToken(prefix, token string) (Slot, bool) {
	id, nonce, ok := cutLast(token, slotMark)
	if !ok || !isNonce(nonce) {
		return Slot{}, false
	}
	rest, ok := strings.CutPrefix(id, prefix+"-")
	if !ok {
		return Slot{}, false
	}
	left, right, ok := strings.Cut(rest, "-")
	instance, worker := number(left, maxInstance), number(right, SlotsPerInstance-1)
	if !ok || instance < 0 || worker < 0 {
		return Slot{}, false
	}
	return SlotOf(prefix, instance, worker), true
}

// number reads a plain decimal number up to a limit; -1 if it is none.
func number(text string, most int) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most || strconv.Itoa(n) != text {
		return -1
	}
	return n
}
