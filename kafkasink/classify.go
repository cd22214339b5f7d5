package kafkasink

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/relay"
)

// classify gives an error of the client its class. The client's own flag for errors
// worth a retry is not enough: it calls time-outs hopeless and a missing topic
// exhausted, and both heal.
func classify(err error) error {
	return classOf(err).Wrap(err)
}

func classOf(err error) relay.Class {
	switch {
	case err == nil:
		return relay.Delivered

	// The client was closed with the record, which may have been sent.
	case errors.Is(err, kgo.ErrClientClosed):
		return relay.Unknown

	// Refused before it was sent, for want of room, or because the client was severed.
	case errors.Is(err, kgo.ErrMaxBuffered), errors.Is(err, kgo.ErrAborting):
		return relay.NotAttempted

	// The broker refused a batch. Each event of it fits the topic's limit as it was last
	// read, so the limit was lowered since; the next claim judges by the new one.
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		return relay.NotAttempted

	// The broker says that something is wrong with a record of the batch, not with which.
	case errors.Is(err, kerr.InvalidRecord), errors.Is(err, kerr.InvalidTimestamp), errors.Is(err, kerr.CorruptMessage),
		errors.Is(err, kerr.UnsupportedForMessageFormat):
		return relay.Failed

	// The broker stumbled, perhaps over this very batch: the waits grow.
	case errors.Is(err, kerr.UnknownServerError):
		return relay.Failed

	// Not written, as far as the client knows: it enforces these limits only on records
	// that were never sent or whose last request was refused. An earlier request that lost
	// its answer may have been written; sending again then makes a duplicate.
	case errors.Is(err, kgo.ErrRecordTimeout), errors.Is(err, kgo.ErrRecordRetries):
		return relay.Environment

	case environment(err):
		return relay.Environment
	default:
		return relay.Failed
	}
}

// environment is true for what lies with brokers, network or rights.
func environment(err error) bool {
	var fromBroker *kerr.Error
	var network net.Error
	// All that is left of what a broker says: leadership, replicas, missing topics,
	// rights, quotas, policies, lost producer ids.
	return errors.As(err, &fromBroker) ||
		errors.As(err, &network) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
