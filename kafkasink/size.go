package kafkasink

import (
	"encoding/binary"

	"outboxrelay/envelope"
)

// Limits of a batch, in bytes. The client holds against them a batch and the length that
// stands before it in a request, so up to lengthSize bytes of max.message.bytes stay unused.
const (
	defaultLimit = 1_000_012 // the client's own, below any broker's default
	leastLimit   = 512       // the client takes no less
	mostLimit    = 99 << 20  // the client and brokers take requests of 100 MiB

	lengthSize = 4
)

// batchOverhead is the size of a record batch without its records. Source: Kafka's
// protocol, message format version 2, from baseOffset to the number of records.
const batchOverhead = 61

// batchSize is the size of a record batch that holds this record alone, uncompressed:
// what a broker compares with max.message.bytes.
func batchSize(r envelope.Record) int {
	// attributes, and the deltas of timestamp and offset, which are 0 in a batch's first record
	n := 1 + 1 + 1
	n += bytesSize(len(r.Key)) + bytesSize(len(r.Value))
	n += varintSize(len(r.Headers))
	for _, h := range r.Headers {
		n += bytesSize(len(h.Key)) + bytesSize(len(h.Value))
	}
	return batchOverhead + varintSize(n) + n
}

// bytesSize is the size of a byte string with its length in front.
func bytesSize(n int) int { return varintSize(n) + n }

// varintSize is the size of a number as a zigzag varint, which encoding/binary writes too.
func varintSize(n int) int {
	var buf [binary.MaxVarintLen64]byte
	return binary.PutVarint(buf[:], int64(n))
}
