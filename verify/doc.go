// Package verify compares an outbox with the topics that a relay filled from it: is every exported event there, once, in
// order, under its own scope, and unchanged? "relay verify" is this package; it also serves tests of applications:
//
//	result, err := verify.Run(ctx, verify.Config{...})
//	if err == nil {
//		err = result.Err()
//	}
//
// It only reads, and a relay may be at work meanwhile: each part of the table is read before the ends of the topics are
// looked up, so what was exported by then must be found. What can't be told for sure is no fault but said as information:
// a row that was pruned, a record that retention has deleted.
//
// Memory is bounded however long table and topics are. The operations are divided by a hash of their ids, and each pass
// takes one part: its rows from the table, then its records from the topics, which are read from start to end every time.
// Nothing is written to disk, and no transaction lasts longer than a page of rows.
package verify
