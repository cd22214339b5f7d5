// Package faults holds tests of the relay program under the faults of real servers: databases that restart, refuse or fall
// silent, brokers that die, topics that change, events that can't be sent, and signals at the wrong moment. Each asks the
// same: is all delivered, in order, once where nothing was in doubt, and soon after the fault has ended. It has no code of
// its own.
//
// Times are scaled down: leases and time-outs are seconds, and an outage lasts until it has been noticed.
package faults
