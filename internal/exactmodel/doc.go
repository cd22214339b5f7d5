// Package exactmodel checks the protocol of exactly-once mode (docs/exactly-once.md) by trying
// everything: each order in which two relays, the database, the brokers and time can act on a
// little outbox, with a number of faults at any point. It has no code of its own.
//
// What decides is the real code. A relay is run by [relay.Relay.Run], with one worker, in virtual
// time; the model is all its ports. What its worker and its helper do next follows from the answers
// that they have had, so a relay in the model is just those, and what comes next is asked of a real one
// that hears them. What a claim takes, and what a settlement writes, is asked of relaytest.Store,
// which a suite shared with the SQL holds to the same contract. The same questions come again and
// again, so each is asked once. The model adds only the order of things, and what brokers do
// with transactional ids, transactions and the ledger.
//
// A state is the outbox (of each row: whose claim it is, whether the lease runs, exported, visible to
// read_committed consumers), of each slot the last entry, the open transaction and who has the newest
// epoch, of each relay what its worker and its helper have heard since they last had the slot
// and nothing undecided, and a write whose caller was told that it failed. Steps:
//
//   - A call to a port is carried out and answered; it is carried out, and the answer is lost; it
//     fails. A claim or settlement has an error, and is carried out later.
//   - A claim takes all that there is, or one row, of either operation. A transaction may be of several
//     claims with one token.
//   - Events and entry are sent, and the commit is asked for; it is carried out, also when nobody waits for
//     it any more, or after its relay was killed; the brokers end the transaction because it took too long.
//   - A lease ends: of a claim that no worker knows any more at no cost, else because its
//     relay has stood still. Relays may stand still at any point anyway.
//   - A relay is killed, and another starts.
//
// In every state that can be reached this holds:
//
//   - twice: no event is visible twice.
//   - order: the events of an operation become visible in their order.
//   - lost: no row is marked exported whose event is not visible.
//   - end: when nothing goes wrong any more all is exported.
//
// The explorer goes breadth first, so the way to the first state from which something breaks is as
// short as can be. That it would tell is tested: mistakes behind the ports must be found.
//
// To have fewer states, it leaves out what makes no difference to a worker: whether a listed claim
// has run out, claims of other slots, which rows a settlement of its own has written, whether a commit failed
// or was fenced, and what it heard before it had the slot and nothing undecided.
// TestWhatMakesNoDifference asks real relays whether that is so.
//
// What it does not cover: more rows, faults or relays than the tests name; more than one worker of a relay; several
// scopes, so neither tenants nor scopes taken out; rows that can't be sent, and dead letters; how long
// anything takes, so neither waits between tries nor delays of rows, nor that a worker looks at what is
// left of its lease; entries of another database, and a lost ledger; the database's identity, which is always
// answered; brokers without transaction version 2, where a late commit may
// belong to the next transaction; loss of what a server has committed. How the Kafka client
// and the SQL keep what the ports promise is tested on real servers.
//
// Larger worlds, which take minutes: go test ./internal/exactmodel -lengthy -timeout 60m
package exactmodel
