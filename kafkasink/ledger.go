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
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, fmt.Errorf("the ledger was not read in %s", openTimeout))
	defer cancel()
	start, end, err := s.ledgerSpan(ctx, slot)
	if err != nil {
		return entry, false, s.explainLedger(because(ctx, err))
	}
	for tail := int64(firstTail); ; tail *= moreTail {
		from := max(start, end-tail)
		last, err := s.lastBetween(ctx, slot, from, end)
		switch {
		case err != nil:
			return entry, false, s.explainLedger(because(ctx, err))
		case last != nil:
			entry, err = parseLedger(last)
			return entry, err == nil, err
		case from == start:
			return entry, false, nil
		}
	}
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
func (s *Sink) ledgerSpan(ctx context.Context, slot relay.Slot) (start, end int64, err error) {
	admin := kadm.NewClient(s.current().Client)
	if start, err = s.ledgerOffset(ctx, slot, admin.ListStartOffsets); err != nil {
		return 0, 0, err
	}
	end, err = s.ledgerOffset(ctx, slot, admin.ListEndOffsets)
	return start, end, err
}

// ledgerOffset asks for an offset of a slot's partition, again during an election.
func (s *Sink) ledgerOffset(ctx context.Context, slot relay.Slot, list func(context.Context, ...string) (kadm.ListedOffsets, error)) (int64, error) {
	for {
		offsets, err := list(ctx, s.cfg.Ledger)
		offset, there := offsets.Lookup(s.cfg.Ledger, slot.Partition)
		switch err = cmp.Or(err, offset.Err); {
		case err == nil && !there:
			return 0, fmt.Errorf("topic %q has no partition %d", s.cfg.Ledger, slot.Partition)
		case !kerr.IsRetriable(err):
			return offset.Offset, err
		}
		select {
		case <-ctx.Done():
			return 0, err
		case <-time.After(tailPoll):
		}
	}
}

// lastBetween gives the last committed record of a slot at some offsets, nil if there is none.
// It reads on until it has seen the last offset, whatever that holds.
func (s *Sink) lastBetween(ctx context.Context, slot relay.Slot, from, end int64) (last *kgo.Record, err error) {
	if from >= end {
		return nil, nil
	}
	opts, err := s.cfg.Options()
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(opts,
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{s.cfg.Ledger: {slot.Partition: kgo.NewOffset().At(from)}}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(tailPoll),
	)...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for {
		fetches := client.PollFetches(ctx)
		if err := errors.Join(context.Cause(ctx), fetches.Err()); err != nil {
			return nil, err
		}
		seen := false
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() && r.Offset < end && string(r.Key) == slot.ID {
				last = r
			}
			seen = seen || r.Offset >= end-1
		})
		if seen {
			return last, nil
		}
	}
}

// ledgerReady is nil if the cluster and the ledger's topic are fit for a slot.
func (s *Sink) ledgerReady(ctx context.Context, slot relay.Slot) error {
	if err := transactional(ctx, s.current().Client); err != nil {
		return err
	}
	err := s.topics.readyForLedger(s.cfg.Ledger)
	if errors.Is(err, errNotRead) {
		if err = s.topics.fresh(ctx, s.cfg.Ledger); err == nil {
			err = s.topics.readyForLedger(s.cfg.Ledger)
		}
	}
	if err != nil {
		return err
	}
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
