package kafkasink

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"outboxrelay/relay"
)

const (
	fenceAgain = 20 * time.Millisecond // while the former transaction is being ended
	// unusedID is put behind the prefix for a transactional id that no relay uses, since theirs end
	// in two numbers.
	unusedID = "check"
)

// fence ends what the holder of a transactional id has under way, and takes it for nobody.
func (c Config) fence(ctx context.Context, client *kgo.Client, id string) error {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID = &id
	req.TransactionTimeoutMillis = int32(c.transactionTimeout().Milliseconds())
	req.ProducerID, req.ProducerEpoch = -1, -1
	for {
		resp, err := req.RequestWith(ctx, client)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if !errors.Is(err, kerr.ConcurrentTransactions) && !errors.Is(err, kerr.CoordinatorNotAvailable) && !errors.Is(err, kerr.CoordinatorLoadInProgress) {
			return because(ctx, err)
		}
		select {
		case <-ctx.Done():
			return because(ctx, err)
		case <-time.After(fenceAgain):
		}
	}
}

// explainID says what to do about a transactional id that can't be used.
func (c Config) explainID(id string, err error) error {
	seen, do := c.judgeID(id, err)
	return fmt.Errorf("%s: %s: %w", seen, do, err)
}

// judgeID says what an error with a transactional id means, and what to do about it.
func (c Config) judgeID(id string, err error) (seen, do string) {
	switch {
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		return fmt.Sprintf("rights on transactional id %q are missing: WRITE, DESCRIBE", id),
			fmt.Sprintf("grant WRITE, DESCRIBE on transactional ids with the prefix %q", c.TransactionalID+"-")
	case errors.Is(err, kerr.InvalidTransactionTimeout):
		return fmt.Sprintf("the brokers allow transactions of less than the %s that the relay asks for", c.transactionTimeout()),
			"raise their transaction.max.timeout.ms, or lower RELAY_KAFKA_DELIVERY_TIMEOUT"
	}
	return fmt.Sprintf("transactional id %q can't be used", id), "see the brokers' log"
}

// inspectIDs tells whether transactional ids with the relays' prefix may be used. Only taking one tells that, so it takes
// one that no relay uses: nobody is fenced by it. Brokers forget it by themselves.
func (c Config) inspectIDs(ctx context.Context, client *kgo.Client) relay.Finding {
	id := c.TransactionalID + "-" + unusedID
	if err := c.fence(ctx, client, id); err != nil {
		seen, do := c.judgeID(id, err)
		return fault("transactional ids", seen+": "+err.Error(), do)
	}
	return relay.Finding{Check: "transactional ids", Seen: fmt.Sprintf("those with the prefix %q may be used", c.TransactionalID+"-")}
}
