// Package inbox lets a consumer handle each event once, although the relay delivers at least once: it notes in the
// consumer's own PostgreSQL database which events were taken, in the same transaction as what the consumer does about
// them.
//
// [Take] is called in that transaction, and tells whether the event is new; its example is a whole handler. Commit the
// record's offset only after the transaction.
//
// # What makes an event the same
//
// Its ce_source and ce_id, compared as bytes. The id consists of the operation and its state version, so one row for each
// operation is enough, with the set of its versions that were taken. A table of the inbox serves several consumers, which
// take independently of each other; consumer names are compared as bytes too. All members of a consumer group have the
// same name.
//
// # Rollback
//
// Taking and effect are one transaction: both are there after its commit, and neither after a rollback, a crash or a
// lost connection. An event whose transaction was rolled back is Fresh when it comes again. A rollback to a savepoint that
// was set before Take undoes it as well. If a commit's answer is lost, handle the event again: it is a Duplicate if the
// commit was carried out.
//
// # Concurrency and isolation levels
//
// Two transactions that take events of one operation at once (two members of a group during a rebalance) decide one after
// the other: the second waits in Take until the first has ended, then sees what it did. Take locks the operation's row
// until the end of the transaction, so what a consumer does to its own rows of that operation happens in the same order.
//
//   - read committed, PostgreSQL's default: the second goes on with the right answer.
//   - repeatable read and serializable: the second fails with SQLSTATE 40001 where the first has changed the row since the
//     second's snapshot. Begin again from the start; the answer is then right.
//   - Transactions that take several events may block each other crosswise. PostgreSQL ends one of them with SQLSTATE
//     40P01, which is to be begun again as well.
//
// # Order
//
// The relay first delivers the events of an operation in the order of their versions, but a duplicate, a replayed topic or
// a dead letter that is sent later may come behind newer ones. Take tells those that are taken for the first time apart
// by [Stale].
//
// # Size and pruning
//
// The table has one row of about 150 bytes for each operation, and grows until [Prune] is called. What was pruned can't be
// recognised any more. So keep it for longer than records can come again: the retention of the topic, if it may be read
// from its beginning, and the longest that relays may be down, since what was sent without being marked comes again after
// that.
//
// The package knows no Kafka client: [envelope.Parse] reads a record's key, value and headers from whatever has them.
// Needs PostgreSQL 14 or newer.
package inbox
