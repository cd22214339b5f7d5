// Package model checks the protocol of claims and leases by trying everything: each
// order in which a few relays, the database, the broker, time and people can act on a
// little outbox, with up to a number of faults at any point. It has no code of its own.
//
// What decides is the real code. What a claim takes, and what a settlement or a renewal
// writes, is asked of relaytest.Store, which a suite shared with the SQL holds to the
// same contract. Which events are sent and which verdicts follow from the answers is
// asked of a relay.Relay through its ports, in virtual time. The same questions come
// again and again, so each is asked once. The model adds only the order of things.
//
// A state is the outbox (of each row: whose it is, whether the lease runs, when it is
// due, attempts, exported), the claims of living relays (of each event: sent, arrived,
// answered, settled), and what only the model knows: which events have arrived, and
// which records may arrive although nobody waits for them any more. Steps:
//
//   - A relay claims, also rows that were left behind; sends, or finds too little of its
//     lease left; settles once a second, while answers are outstanding too, and tries the
//     same verdicts again until they are taken; renews, also when a settlement has outlasted
//     the lease; takes the marks off its token when it has survived; follows late answers.
//   - An event arrives and is acknowledged; arrives, and the answer is late or lost; is
//     refused, in each class; is given up by the client, and arrives or not.
//   - Where there is a dead-letter topic, a letter follows a row fault: it is acknowledged,
//     refused, or has no answer.
//   - A relay is killed. A lease ends, as the relay counts, and then in the database. The
//     database refuses a settlement. The answer to a claim, a settlement or a renewal is
//     lost, though it happened: the relay counts on no more than it did.
//   - An operator retries or discards a parked row. A Python exporter takes rows. The
//     database is restored, and ids are used again for other events.
//   - A retry delay, or a day, passes.
//
// In every state that can be reached this holds:
//
//   - I1: an exported row has arrived at least once, or its letter has, unless it was
//     discarded.
//   - I2: an event is first delivered when the earlier ones of its operation were, or their
//     rows were given up. (Not with a Python exporter.)
//   - I3: a settlement or renewal changes nothing of a row that its claim does not hold,
//     but that a late success marks it exported, and a dead letter makes the rest of its
//     operation due.
//   - I4: a settlement leaves its own claim on no exported row.
//   - I5: when nothing goes wrong any more all is exported but parked rows and what is
//     behind them; when an operator retries those, they are too. Also after all relays
//     were killed.
//   - I6: only what the sink refused as a row fault is parked, or what may have ended relay
//     after relay: three claims of it alone in a row ran out that nobody settled or renewed.
//     Attempts are never negative.
//   - I8: nobody sends an event while another relay that may count on its lease waits for
//     the answer to it.
//
// (I7, that the Operation is never written, needs no model: the ports have no way to.)
// An innocent row can be parked by that when relays that live let the lease end without
// taking the marks off, again and again. Where this does not happen, a row is parked only if
// three relays were killed in a row while they held it alone. Both are tested.
//
// A claim that runs out on a row which somebody else has marked late stays on the
// exported row when its relay is killed or gets no answer; nothing reads it there, and
// the log counts how often that is the end.
//
// The explorer goes breadth first, so what it tells is as short as can be. That it would
// tell is tested: planted mistakes must be found.
//
// What it does not cover: more rows, claims or faults than the tests name; how long
// anything takes, beyond what comes before what; the delays of one operation's rows
// passing one by one; pauses between the look at the lease and the send; the fairness
// of the scheduler, pauses of a scope, and which scope comes next; the bounds on how many
// rows that were left behind are claimed together; letters of one settlement with different answers; concurrency inside one
// transaction (locks, snapshots), which the tests of package store are for; and records of
// one client that overtake each other, which the Kafka protocol rules out.
//
// A new kind of step is a method that adds to moves, listed in model.next; a new
// decision is a function in rules that asks the real code.
package model
