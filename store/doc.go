// Package store claims and settles rows of Aksara's outbox in PostgreSQL. It
// implements [relay.Store].
//
// Every transaction is about exactly one scope: the row security setting is set inside
// it, for it alone, and each statement names its scope as well. Only outbox rows are
// locked, only the six columns that Aksara's own exporter writes are written, and all
// instants are the database's. A transaction is one round trip: begin, settings,
// statement and commit travel together.
//
// Order within an operation is the claim statement's work; sql/claim.sql tells how. It
// uses the index relay_outbox_operation where that is ready, and the transitions table
// where it is not.
package store
