// Package envelope says what one event is and how it looks on the wire.
//
// An [Event] is one committed transition of one Operation. [New] makes it from
// trusted values (configuration and the columns of its outbox row) and the
// payload; what can't become an event is a [Fault] of that row alone.
// [Event.Record] gives its wire form, a CloudEvents 1.0 event in the binary mode
// of the Kafka protocol binding, and [Parse] reads that form back.
//
// The wire form is frozen: testdata holds golden records, and a record written by
// any released version stays readable. All of a record except its partition,
// offset and timestamp is the same in every delivery of a row.
//
// The package knows neither Postgres nor Kafka, and everything in it is safe for
// concurrent use.
package envelope
