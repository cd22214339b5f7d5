package kafkasink

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

const (
	// transactionFeature is what makes Kafka refuse the late end of a transaction: without it
	// that would end the next one half way.
	transactionFeature = "transaction.version"
	transactionVersion = 2

	firstTail = 64 // offsets before the end that are read for an entry, and how many times more if there is none
	moreTail  = 16
	glance    = firstTail * moreTail // offsets before each end that are read to see whose entries there are
	tailPoll  = 250 * time.Millisecond
)

// ledgerEntry is an entry's value.
type ledgerEntry struct {
	Token  string             `json:"token"`
	Source string             `json:"source"`
	Rows   map[string][]int64 `json:"rows,omitempty"` // by scope as the table has it
	// Letters holds, for the rows of which dead letters were sent, the reason by the row's id.
	Letters map[int64]string `json:"letters,omitempty"`
}

// mostReason is how much of a reason goes into an entry, in characters.
const mostReason = 300

const (
	ledgerPartitions = 64
	ledgerReplicas   = 3 // or as many as there are brokers
	ledgerSegment    = 16 << 20
)

// CreateLedger makes the ledger's topic as exactly-once needs it; made is false if it is there
// already, however it is.
func CreateLedger(ctx context.Context, cfg Config) (made bool, err error) {
	client, err := newInspector(cfg)
	if err != nil {
		return false, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	cluster, err := admin.BrokerMetadata(ctx)
	if err != nil {
		return false, fmt.Errorf("create ledger topic %q: %w", cfg.Ledger, err)
	}
	text := func(s string) *string { return &s }
	answer, err := admin.CreateTopic(ctx, ledgerPartitions, int16(min(ledgerReplicas, len(cluster.Brokers))), map[string]*string{
		cleanupConfig: text("compact"), minInsyncConfig: text(strconv.Itoa(cfg.MinInsyncReplicas)),
		segmentConfig: text(strconv.Itoa(ledgerSegment)), "unclean.leader.election.enable": text("false"),
	}, cfg.Ledger)
	switch err = cmp.Or(err, answer.Err); {
	case errors.Is(err, kerr.TopicAlreadyExists):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("create ledger topic %q: %w", cfg.Ledger, err)
	}
	return true, nil
}

// ledgerRecord is an entry on the wire. Its key is the slot, so compaction keeps the last one.
func ledgerRecord(topic string, slot relay.Slot, entry relay.Entry) *kgo.Record {
	value := ledgerEntry{Token: entry.Token, Source: entry.Source, Rows: map[string][]int64{}, Letters: map[int64]string{}}
	for scope, ids := range entry.Rows {
		value.Rows[scope.Stored()] = ids
	}
	for id, why := range entry.Letters {
		if runes := []rune(why); len(runes) > mostReason {
			why = string(runes[:mostReason])
		}
		value.Letters[id] = why
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("kafkasink: an entry can't be written: %v", err)) // strings and numbers always can
	}
	return &kgo.Record{Topic: topic, Partition: slot.Partition, Key: []byte(slot.ID), Value: text}
}

// parseLedger reads an entry.
func parseLedger(r *kgo.Record) (entry relay.Entry, err error) {
	var value ledgerEntry
	if err := json.Unmarshal(r.Value, &value); err != nil || value.Token == "" {
		return entry, fmt.Errorf("the ledger's record at %s/%d/%d is no entry: it is not the relay's", r.Topic, r.Partition, r.Offset)
	}
	entry = relay.Entry{Token: value.Token, Source: value.Source, Rows: map[envelope.Scope][]int64{}, Letters: value.Letters}
	for stored, ids := range value.Rows {
		scope, err := envelope.Stored(stored)
		if err != nil {
			return entry, fmt.Errorf("the ledger's record at %s/%d/%d: %w", r.Topic, r.Partition, r.Offset, err)
		}
		entry.Rows[scope] = ids
	}
	return entry, nil
}

// Last implements [relay.Transactions].
func (s *Sink) Last(ctx context.Context, slot relay.Slot) (entry relay.Entry, ok bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, errLedgerSlow)
	defer cancel()
	at, err := s.ledgerSpan(ctx, slot)
	if err != nil {
		return entry, false, s.explainLedger(because(ctx, err))
	}
	entries, err := s.lastEntries(ctx, map[relay.Slot]span{slot: at})
	entry, ok = entries[slot]
	return entry, ok, err
}

// Entries implements [relay.Transactions]. It reads up to the last stable offsets, so that it waits for nobody's transaction, and
// not far back: in a ledger of many prefixes there may be no entry of this one.
func (s *Sink) Entries(ctx context.Context, prefix string) (map[relay.Slot]relay.Entry, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, errLedgerSlow)
	defer cancel()
	if err := s.ledgerReady(ctx); err != nil {
		return nil, err
	}
	admin := kadm.NewClient(s.current().Client)
	starts, err := s.ledgerOffsets(ctx, admin.ListStartOffsets)
	if err != nil {
		return nil, s.explainLedger(because(ctx, err))
	}
	ends, err := s.ledgerOffsets(ctx, admin.ListCommittedOffsets)
	if err != nil {
		return nil, s.explainLedger(because(ctx, err))
	}
	slots := map[relay.Slot]span{}
	for partition, end := range ends {
		slot := relay.SlotOf(prefix, int(partition)/relay.SlotsPerInstance, int(partition)%relay.SlotsPerInstance)
		slots[slot] = span{max(starts[partition], end-glance), end}
	}
	return s.lastEntries(ctx, slots)
}

var errLedgerSlow = fmt.Errorf("the ledger was not read in %s", openTimeout)

// span is where a slot's partition begins, and how far it is to be read.
type span struct{ start, end int64 }

// lastEntries gives the last committed entry of each slot that has one.
func (s *Sink) lastEntries(ctx context.Context, slots map[relay.Slot]span) (entries map[relay.Slot]relay.Entry, err error) {
	entries = map[relay.Slot]relay.Entry{}
	for tail := int64(firstTail); len(slots) > 0; tail *= moreTail {
		tails, more := map[relay.Slot]span{}, map[relay.Slot]span{}
		for slot, at := range slots {
			tails[slot] = span{max(at.start, at.end-tail), at.end}
		}
		last, err := s.lastWithin(ctx, tails)
		if err != nil {
			return nil, s.explainLedger(because(ctx, err))
		}
		for slot, at := range slots {
			if r := last[slot]; r != nil {
				if entries[slot], err = parseLedger(r); err != nil {
					return nil, err
				}
			} else if tails[slot].start > at.start {
				more[slot] = at
			}
		}
		slots = more
	}
	return entries, nil
}

// explainLedger says what to do about a ledger that can't be read.
func (s *Sink) explainLedger(err error) error {
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return fmt.Errorf("rights on ledger topic %q are missing: grant READ on it: %w", s.cfg.Ledger, err)
	}
	return fmt.Errorf("read the ledger: %w", err)
}

// ledgerSpan gives where a slot's partition begins and ends: up to the high watermark, and not
// only to the last stable offset, behind which the entry could lie that decides.
func (s *Sink) ledgerSpan(ctx context.Context, slot relay.Slot) (at span, err error) {
	admin := kadm.NewClient(s.current().Client)
	starts, err := s.ledgerOffsets(ctx, admin.ListStartOffsets, slot.Partition)
	if err != nil {
		return at, err
	}
	ends, err := s.ledgerOffsets(ctx, admin.ListEndOffsets, slot.Partition)
	return span{starts[slot.Partition], ends[slot.Partition]}, err
}

// ledgerOffsets asks for an offset of each partition, or of those that are given, again during an election.
func (s *Sink) ledgerOffsets(ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error), only ...int32) (map[int32]int64, error) {
	for {
		listed, err := list(ctx, s.cfg.Ledger)
		offsets := map[int32]int64{}
		for partition, offset := range listed[s.cfg.Ledger] {
			if len(only) == 0 || slices.Contains(only, partition) {
				offsets[partition], err = offset.Offset, cmp.Or(err, offset.Err)
			}
		}
		for _, partition := range only {
			if _, there := offsets[partition]; err == nil && !there {
				return nil, fmt.Errorf("topic %q has no partition %d", s.cfg.Ledger, partition)
			}
		}
		if !kerr.IsRetriable(err) {
			return offsets, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(tailPoll):
		}
	}
}

// lastWithin gives the last committed record of each slot within its span, as far as there is one.
// It reads on until it has seen the last offset of each, whatever that holds.
func (s *Sink) lastWithin(ctx context.Context, slots map[relay.Slot]span) (last map[relay.Slot]*kgo.Record, err error) {
	last = map[relay.Slot]*kgo.Record{}
	unread, from := map[int32]relay.Slot{}, map[int32]kgo.Offset{}
	for slot, at := range slots {
		if at.start < at.end {
			unread[slot.Partition], from[slot.Partition] = slot, kgo.NewOffset().At(at.start)
		}
	}
	if len(unread) == 0 {
		return last, nil
	}
	opts, err := s.cfg.Options()
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(opts,
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{s.cfg.Ledger: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(tailPoll),
		kgo.FetchMaxBytes(4<<20), kgo.FetchMaxPartitionBytes(1<<20),
	)...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for len(unread) > 0 {
		fetches := client.PollFetches(ctx)
		if err := errors.Join(context.Cause(ctx), fetches.Err()); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			slot, reads := unread[r.Partition]
			end := slots[slot].end
			if reads && !r.Attrs.IsControl() && r.Offset < end && string(r.Key) == slot.ID {
				last[slot] = r
			}
			if reads && r.Offset >= end-1 {
				delete(unread, r.Partition)
			}
		})
	}
	return last, nil
}

// ledgerReady is nil if the cluster and the ledger's topic are fit for exactly-once.
func (s *Sink) ledgerReady(ctx context.Context) error {
	if err := transactional(ctx, s.current().Client); err != nil {
		return err
	}
	err := s.topics.readyForLedger(s.cfg.Ledger)
	if errors.Is(err, errNotRead) {
		if err = s.topics.fresh(ctx, s.cfg.Ledger); err == nil {
			err = s.topics.readyForLedger(s.cfg.Ledger)
		}
	}
	return err
}

// ledgerHas is nil if the ledger's topic has a slot's partition.
func (s *Sink) ledgerHas(slot relay.Slot) error {
	if n := s.topics.partitions(s.cfg.Ledger); int(slot.Partition) >= n {
		return fmt.Errorf("ledger topic %q has %d partitions, and slot %s needs number %d: give it more", s.cfg.Ledger, n, slot.ID, slot.Partition)
	}
	return nil
}

// transactional is nil if brokers keep a late end of a transaction from ending the next one.
func transactional(ctx context.Context, client *kgo.Client) error {
	resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("ask for the cluster's features: %w", because(ctx, err))
	}
	at := slices.IndexFunc(resp.FinalizedFeatures, func(f kmsg.ApiVersionsResponseFinalizedFeature) bool { return f.Name == transactionFeature })
	if at < 0 || resp.FinalizedFeatures[at].MaxVersionLevel < transactionVersion {
		return fmt.Errorf("the brokers do not have %s=%d, without which a transaction can be committed half: "+
			"upgrade to Kafka 4.0 or later and raise the feature with kafka-features.sh", transactionFeature, transactionVersion)
	}
	return nil
}
