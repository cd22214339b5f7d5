// Package relay takes events from an outbox to a sink: it claims rows under a lease,
// publishes their events outside any transaction, and settles what came of each.
//
// Data flows one way. A [Store] claims [Row]s; each becomes an [envelope.Event]; a
// [Sink] sends the events and answers each; the answers become [Verdict]s, which the
// store writes. The package imports neither Postgres nor Kafka: package store and
// package kafkasink implement its two ports, and a Go program may bring a Sink of its
// own.
//
// A row between claim and end:
//
//	due ──claim──> in flight ──delivered──────────> exported
//	 ^                 │
//	 │                 ├─row fault──> parked        (until somebody retries or discards it)
//	 ├──due time───────┼─environment, failed──> delayed
//	 ├─────────────────┼─not attempted: given back as it was
//	 └──lease ends─────┴─unknown: nothing is written
//
// What holds whatever happens:
//
//   - A row is marked exported only after the sink said that all in-sync replicas have
//     its event. A database error never turns a delivered event into a failed one.
//   - A claim holds, of each operation, an unbroken run from its first unexported row
//     on, in ascending order; behind an event that was not delivered nothing of its
//     operation is sent. So first deliveries of an operation are in order, among relays.
//   - No send begins with less of the lease left than the delivery time-out and 3 s.
//   - All verdicts are guarded by the claim's token. After the lease a late success is
//     still marked if nobody else did, without touching the new owner's claim.
package relay
