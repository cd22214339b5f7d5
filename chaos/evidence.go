package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
	"outboxrelay/verify"
)

// evidencePatience bounds the reading of table and topic.
const evidencePatience = 5 * time.Minute

// findings are what was found out in the end.
type findings struct {
	rows     []row
	verdict  *verdict
	missing  int // operations that the database itself lost transitions of
	verified *verify.Result
	crashes  []error // relays that ended by themselves, or did not end when asked
	// Of the ledger: how many offsets are taken, and how many entries compaction has left.
	ledgerEnds int64
	entries    int
}

// err tells which promises were broken, or is nil.
func (f *findings) err() error {
	all := append([]error{f.verdict.err(), f.verified.Err()}, f.crashes...)
	if f.missing > 0 {
		all = append(all, fmt.Errorf("%d operations have fewer transitions than were committed", f.missing))
	}
	return errors.Join(all...)
}

// judge reads table and topic, and judges twice: by package verify, and by a comparison of its own.
func (s *stage) judge(ctx context.Context, h history) (*findings, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, evidencePatience, errors.New("table and topic could not be read in time"))
	defer cancel()
	s.note("judging")
	pool, err := s.pool(ctx, "postgres")
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	f := &findings{}
	if f.rows, err = readRows(ctx, pool); err != nil {
		return nil, fmt.Errorf("read the tables: %w", err)
	}
	records, _, err := s.readRecords(ctx, topicName)
	if err != nil {
		return nil, fmt.Errorf("read the topic: %w", err)
	}
	if s.delivery == exactly {
		entries, ends, err := s.readRecords(ctx, ledgerName)
		if err != nil {
			return nil, fmt.Errorf("read the ledger: %w", err)
		}
		f.entries, f.ledgerEnds = len(entries), ends
	}
	deliveries, malformed := parseAll(records)
	f.verdict = compare(f.rows, deliveries, malformed)
	f.verdict.once = s.delivery == exactly
	f.missing = missing(f.rows, h.known)
	for _, r := range s.relays {
		f.crashes = append(f.crashes, r.failures()...)
	}
	if s.race {
		f.crashes = append(f.crashes, s.races()...)
	}
	f.verified, err = verify.Run(ctx, verify.Config{
		Namespace:   application.Namespace,
		ExactlyOnce: s.delivery == exactly,
		Scopes:      scopes(),
		Topic:       func(envelope.Scope) string { return topicName },
		Database:    pool,
		Kafka:       []kgo.Opt{kgo.SeedBrokers(s.addresses()...)},
	})
	return f, err
}

// readRows reads all transitions. One without an outbox row shows as not exported.
func readRows(ctx context.Context, pool *pgxpool.Pool) ([]row, error) {
	result, err := pool.Query(ctx, `
		select t.operation_id, t.state_version, t.tenant_scope, t.created_at, coalesce(o.exported_at, 'epoch'),
		       o.exported_at is not null, coalesce(o.exported_at is null and o.next_attempt_at = 'infinity', false),
		       coalesce(o.last_error, '')
		from aksara_operation_transitions t left join aksara_operation_outbox o on o.transition_id = t.id
		order by t.id`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(result, func(result pgx.CollectableRow) (r row, err error) {
		err = result.Scan(&r.operation, &r.version, &r.scope, &r.created, &r.exported, &r.isExported, &r.parked, &r.lastError)
		return r, err
	})
}

// topicEnds asks where a topic ends, again while a leader that was just elected does not know.
func (s *stage) topicEnds(ctx context.Context, topic string) (kadm.ListedOffsets, error) {
	for {
		ends, err := kadm.NewClient(s.client).ListEndOffsets(ctx, topic)
		if err = cmp.Or(err, ends.Error()); !kerr.IsRetriable(err) || !await(ctx, time.After(time.Second)) {
			return ends, err
		}
	}
}

// readRecords reads a topic from start to end, and tells how many of its offsets are taken.
func (s *stage) readRecords(ctx context.Context, topic string) (records []*kgo.Record, taken int64, err error) {
	ends, err := s.topicEnds(ctx, topic)
	if err != nil {
		return nil, 0, err
	}
	from, open := map[int32]kgo.Offset{}, map[int32]int64{}
	for partition, end := range ends[topic] {
		if end.Offset > 0 {
			from[partition], open[partition] = kgo.NewOffset().AtStart(), end.Offset
			taken += end.Offset
		}
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(s.addresses()...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords()) // the last one may end a transaction
	if err != nil {
		return nil, 0, err
	}
	defer client.Close()
	for len(open) > 0 {
		fetches := client.PollFetches(ctx)
		if err := errors.Join(context.Cause(ctx), fetches.Err()); err != nil {
			return nil, 0, err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				records = append(records, r)
			}
			if r.Offset >= open[r.Partition]-1 {
				delete(open, r.Partition)
			}
		})
	}
	return records, taken, nil
}

// parseAll gives the records that are events, and what is wrong with the others.
func parseAll(records []*kgo.Record) (deliveries []delivery, malformed []string) {
	for _, record := range records {
		d, err := parseRecord(record)
		if err != nil {
			malformed = append(malformed, fmt.Sprintf("record at %d/%d: %v", record.Partition, record.Offset, err))
			continue
		}
		deliveries = append(deliveries, d)
	}
	return deliveries, malformed
}

// parseRecord takes from a record what the comparison needs.
func parseRecord(r *kgo.Record) (d delivery, err error) {
	headers := map[string]string{}
	for _, h := range r.Headers {
		if _, twice := headers[h.Key]; twice {
			return d, fmt.Errorf("header %s is there twice", h.Key)
		}
		headers[h.Key] = string(h.Value)
	}
	d = delivery{partition: r.Partition, offset: r.Offset, sent: r.Timestamp, scope: "__aksara_global__"}
	if d.operation, err = uuid.ParseBytes(r.Key); err != nil {
		return d, fmt.Errorf("key: %w", err)
	}
	if d.version, err = strconv.ParseInt(headers["ce_stateversion"], 10, 64); err != nil {
		return d, fmt.Errorf("ce_stateversion: %w", err)
	}
	if tenant, ok := headers["ce_tenant"]; ok {
		d.scope = tenant
	}
	switch {
	case headers["ce_id"] != d.event.String():
		return d, fmt.Errorf("ce_id is %q", headers["ce_id"])
	case headers["ce_namespace"] != application.Namespace:
		return d, fmt.Errorf("ce_namespace is %q", headers["ce_namespace"])
	case len(r.Value) == 0:
		return d, errors.New("no value")
	}
	return d, nil
}
