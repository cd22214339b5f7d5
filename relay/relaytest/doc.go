// Package relaytest helps to test what stands on either side of a relay: an outbox in
// memory, a sink whose answers a test decides, and for each of the two ports a suite
// that every implementation of it must pass.
//
// [Store] keeps rows by the rules that package relay states for its Store, on the
// process's clock or, inside testing/synctest, on the bubble's. [Sink] hands each
// Publish to the test. [ExerciseStore] and [ExerciseSink] hold an implementation
// against the comments of the ports; the two here pass them, so a test that uses them
// may trust them.
//
// The package is for tests alone and belongs in no program.
package relaytest
