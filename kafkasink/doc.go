// Package kafkasink sends events to Kafka. It implements [relay.Sink] with franz-go: an
// idempotent producer, acks=all, and the same partition for a key as Java clients choose.
//
// Nothing is sent to a topic before its settings were read and found to keep what the
// relay promises (replicas, in-sync replicas, rights); they are read again regularly and
// whenever an answer hints that they changed. An event whose outcome is unknown is never
// cancelled in the client: a cancelled record can make the next one look delivered.
package kafkasink
