package kafkasink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"outboxrelay/relay"
)

// sweepEvery is how much later than a transaction's time-out brokers end it at the latest.
const sweepEvery = 10 * time.Second

// SlotState is what a slot's transaction coordinator says of it.
type SlotState struct {
	Slot        relay.Slot
	State       string // in Kafka's words: Empty, Ongoing, CompleteCommit and so on
	ProducerID  int64
	Epoch       int16 // one more each time that somebody takes or fences the slot, or a transaction ends
	Coordinator int32 // the broker
	Open        time.Duration
	Hangs       bool // the transaction is open for longer than brokers let it be
}

// Slots tells how the slots are of which brokers know something, in their order. It changes nothing.
func Slots(ctx context.Context, cfg Config) (slots []SlotState, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, fmt.Errorf("no answer from Kafka in %s", openTimeout))
	defer cancel()
	client, err := newInspector(cfg)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	topics, err := admin.ListTopics(ctx, cfg.Ledger)
	if err = cmp.Or(err, topics[cfg.Ledger].Err); err != nil {
		return nil, fmt.Errorf("look at ledger topic %q: %w", cfg.Ledger, because(ctx, err))
	}
	known := map[string]relay.Slot{}
	var ids []string
	for partition := range topics[cfg.Ledger].Partitions {
		slot := relay.SlotOf(cfg.TransactionalID, int(partition)/relay.SlotsPerInstance, int(partition)%relay.SlotsPerInstance)
		known[slot.ID], ids = slot, append(ids, slot.ID)
	}
	described, err := describe(ctx, admin, ids)
	if err != nil {
		return nil, cfg.explainID(cfg.TransactionalID+"-...", because(ctx, err))
	}
	now := time.Now()
	for id, d := range described {
		if errors.Is(d.Err, kerr.TransactionalIDNotFound) {
			continue // nobody has taken it yet, or not for very long
		}
		if d.Err != nil {
			return nil, cfg.explainID(id, d.Err)
		}
		state := SlotState{Slot: known[id], State: d.State, ProducerID: d.ProducerID, Epoch: d.ProducerEpoch, Coordinator: d.Coordinator}
		switch d.State {
		case "Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence":
			state.Open = max(0, now.Sub(time.UnixMilli(d.StartTimestamp)))
			state.Hangs = state.Open > time.Duration(d.TimeoutMillis)*time.Millisecond+sweepEvery
		}
		slots = append(slots, state)
	}
	slices.SortFunc(slots, func(a, b SlotState) int { return cmp.Compare(a.Slot.Partition, b.Slot.Partition) })
	return slots, nil
}

// describe asks coordinators for transactional ids, again while they are elected, as at the first transaction of a cluster.
func describe(ctx context.Context, admin *kadm.Client, ids []string) (described kadm.DescribedTransactions, err error) {
	for {
		described, err = admin.DescribeTransactions(ctx, ids...)
		if !errors.Is(err, kerr.CoordinatorNotAvailable) && !errors.Is(err, kerr.CoordinatorLoadInProgress) {
			return described, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(fenceAgain):
		}
	}
}
