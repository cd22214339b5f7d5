// Package e2e holds tests of the whole: the relay program as users run it, on a real
// PostgreSQL, a real Kafka and, where it is about compatibility, a real Aksara. It
// has no code of its own.
package e2e
