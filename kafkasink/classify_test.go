package kafkasink

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/relay"
)

// brokerError finds an error of the protocol by its name.
func brokerError(name string) *kerr.Error {
	for code := range int16(200) {
		if err, ok := errors.AsType[*kerr.Error](kerr.ErrorForCode(code)); ok && err.Message == name {
			return err
		}
	}
	panic("no broker error " + name)
}

func TestClassOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err    error
		class  relay.Class
		reason string
	}{
		{nil, relay.Delivered, "all in-sync replicas have it"},

		{kgo.ErrClientClosed, relay.Unknown, "it may have been sent before"},
		{kgo.ErrAborting, relay.NotAttempted, "the client was severed before it was sent"},
		{kgo.ErrMaxBuffered, relay.NotAttempted, "it never got into the client"},

		{kerr.MessageTooLarge, relay.NotAttempted, "the limit was lowered; the next claim judges by the new one"},
		{kerr.RecordListTooLarge, relay.NotAttempted, "likewise for segment.bytes"},

		{kerr.InvalidRecord, relay.Failed, "one of the batch's records is bad, no telling which"},
		{kerr.InvalidTimestamp, relay.Failed, "a record's timestamp is refused"},
		{kerr.CorruptMessage, relay.Failed, "old brokers' answer to a record without key on a compacted topic"},
		{kerr.UnsupportedForMessageFormat, relay.Failed, "headers on a topic of the old format"},

		{kgo.ErrRecordTimeout, relay.Environment, "brokers were away, or refused for long"},
		{kgo.ErrRecordRetries, relay.Environment, "likewise"},

		{kerr.NotLeaderForPartition, relay.Environment, "an election"},
		{kerr.LeaderNotAvailable, relay.Environment, "an election"},
		{kerr.NotEnoughReplicas, relay.Environment, "brokers are missing"},
		{kerr.NotEnoughReplicasAfterAppend, relay.Environment, "brokers are missing; it may come twice"},
		{kerr.RequestTimedOut, relay.Environment, "a slow broker; it may come twice"},
		{kerr.KafkaStorageError, relay.Environment, "a broker's disk"},
		{kerr.UnknownServerError, relay.Failed, "perhaps the batch's fault: the waits must grow"},
		{kerr.UnknownTopicOrPartition, relay.Environment, "heals when the topic is created"},
		{kerr.UnknownTopicID, relay.Environment, "the topic was deleted"},
		{kerr.InvalidTopicException, relay.Environment, "the topic's name is refused"},
		{kerr.TopicAuthorizationFailed, relay.Environment, "heals when the right is granted"},
		{kerr.ClusterAuthorizationFailed, relay.Environment, "likewise"},
		{kerr.SaslAuthenticationFailed, relay.Environment, "heals when the password is right"},
		{kerr.ThrottlingQuotaExceeded, relay.Environment, "a quota"},
		{kerr.PolicyViolation, relay.Environment, "a policy of the cluster"},
		{kerr.InvalidRequiredAcks, relay.Environment, "a policy of the cluster"},
		{kerr.OutOfOrderSequenceNumber, relay.Environment, "the broker forgot the producer"},
		{kerr.UnknownProducerID, relay.Environment, "the broker forgot the producer"},
		{kerr.InvalidProducerEpoch, relay.Environment, "the broker forgot the producer"},
		{kerr.UnsupportedVersion, relay.Environment, "brokers of another age"},
		{kerr.UnsupportedCompressionType, relay.Environment, "a topic that takes no such codec"},

		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, relay.Environment, "nothing listens"},
		{&net.DNSError{Name: "broker", IsNotFound: true}, relay.Environment, "no such host"},
		{net.ErrClosed, relay.Environment, "the connection broke"},
		{io.EOF, relay.Environment, "the connection broke"},
		{io.ErrUnexpectedEOF, relay.Environment, "the connection broke"},
		{os.ErrDeadlineExceeded, relay.Environment, "slow network"},
		{syscall.ECONNRESET, relay.Environment, "the connection broke"},
		{context.DeadlineExceeded, relay.Environment, "slow network"},
		{context.Canceled, relay.Environment, "a client that ends"},
		{notConnected(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), relay.Environment, "no trust in the broker"},
		{notConnected(&fs.PathError{Op: "open", Path: "password", Err: syscall.ENOENT}), relay.Environment, "a secret that can't be read"},
		{notConnected(errors.New("no PEM certificate")), relay.Environment, "a bad file"},

		{errors.New("something else"), relay.Failed, "nobody knows"},
	} {
		for form, err := range map[string]error{"bare": test.err, "wrapped": fmt.Errorf("produce: %w", test.err), "joined": errors.Join(errors.New("produce"), test.err)} {
			if test.err == nil && form != "bare" {
				continue
			}
			got := classify(err)
			if class := relay.ClassOf(got); class != test.class {
				t.Errorf("%v, %s, is %s, want %s: %s", test.err, form, class, test.class, test.reason)
			}
			if err != nil && (got.Error() != err.Error() || !errors.Is(got, test.err)) {
				t.Errorf("classify changed %v to %v", err, got)
			}
		}
	}
}

func TestNotConnectedLeavesNetworkErrorsAlone(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	if got := notConnected(refused); got != error(refused) {
		t.Errorf("notConnected(%v) = %v", refused, got)
	}
	if got := notConnected(nil); got != nil {
		t.Errorf("notConnected(nil) = %v", got)
	}
}
