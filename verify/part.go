package verify

import (
	"crypto/sha256"
	"encoding/binary"
	"math"

	"github.com/google/uuid"
)

// part is a share of all operations: those whose bucket lies between two, both included.
type part struct{ from, to uint16 }

// bucket is where an operation belongs. Ids themselves are no measure: those of some kinds begin with the time, others
// end with the machine. rowsSQL computes the same.
func bucket(operation uuid.UUID) uint16 {
	sum := sha256.Sum256(operation[:])
	return binary.BigEndian.Uint16(sum[:])
}

// parts divides all operations into n parts of like size.
func parts(n int) []part {
	const buckets = math.MaxUint16 + 1
	n = min(max(n, 1), buckets)
	all := make([]part, n)
	for i := range all {
		all[i] = part{uint16(i * buckets / n), uint16((i+1)*buckets/n - 1)}
	}
	return all
}

// holds tells whether a record belongs to the part, by its key. Keys that are no operation's belong to the first part.
func (p part) holds(key []byte) bool {
	operation, err := uuid.ParseBytes(key)
	if err != nil {
		return p.from == 0
	}
	b := bucket(operation)
	return p.from <= b && b <= p.to
}

// divisible is false for the smallest part there is.
func (p part) divisible() bool { return p.from < p.to }

func (p part) halves() []part {
	middle := p.from + (p.to-p.from)/2
	return []part{{p.from, middle}, {middle + 1, p.to}}
}

// bounds are the part's first and last bucket as the database compares them.
func (p part) bounds() (from, to []byte) {
	return binary.BigEndian.AppendUint16(nil, p.from), binary.BigEndian.AppendUint16(nil, p.to)
}
