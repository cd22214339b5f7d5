package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"outboxrelay/internal/childproc"
)

// peerRole is who the programs of others are in the database. Debezium reads the log, and a whole table at first.
const peerRole = "peer"

// peerGrace is how long a peer may take to end.
const peerGrace = time.Minute

// peer is a program of others that empties an outbox.
type peer struct {
	command childproc.Command
	health  func(context.Context) error // asked every second while it runs: what has gone wrong in it
	marked  func(context.Context) error // an error until it has written down that the last row is sent
}

// beginning is when the first records came.
type beginning struct {
	usage
	records int64
}

// The peers that targets are about.
const (
	debeziumFromLog    = "Debezium, from the log"
	watermillForwarder = "Watermill's forwarder"
)

// preparePeers fetches and builds what others have made.
func (s *stage) preparePeers(ctx context.Context) error {
	s.note("fetching Debezium, building Watermill's forwarder")
	if err := s.prepareDebezium(ctx); err != nil {
		return fmt.Errorf("prepare Debezium (leave out -peers to measure without): %w", err)
	}
	if err := s.prepareWatermill(ctx); err != nil {
		return fmt.Errorf("prepare Watermill (leave out -peers to measure without): %w", err)
	}
	return nil
}

// peerWays are what others have made, on rows of the same application. Plain has Aksara's tables without what the relay
// adds.
func (s *stage) peerWays(plain database) []*way {
	if !s.peers {
		return nil
	}
	onPlain := func(run func(context.Context, database, topic) (drained, error)) func(context.Context) (drained, error) {
		return func(ctx context.Context) (drained, error) { return s.onCopy(ctx, s.newTopic, plain, run) }
	}
	onLog := func(run func(context.Context, topic) (drained, error)) func(context.Context) (drained, error) {
		return func(ctx context.Context) (drained, error) {
			return s.onTopic(ctx, s.newTopic, func(t topic) (drained, error) { return run(ctx, t) })
		}
	}
	return []*way{
		{name: debeziumFromLog, run: onLog(s.runStream)},
		{name: "Debezium, from the log, warmed up", run: onLog(s.runWarmStream)},
		{name: "Debezium, initial snapshot", run: onPlain(s.runSnapshot)},
		{name: watermillForwarder, run: onPlain(s.runWatermill)},
	}
}

// runPeer starts a peer and has it send all rows.
func (s *stage) runPeer(ctx context.Context, p peer, t topic) (went drained, err error) {
	before, err := s.look(ctx)
	if err != nil {
		return went, err
	}
	before.client = 0 // the peer has not begun
	process, err := childproc.Start(p.command)
	if err != nil {
		return went, err
	}
	defer process.Kill()
	return s.measurePeer(ctx, p, process, before, t)
}

// measurePeer waits until a peer has sent all rows, and ends it. The broker's count must be the table's, to the row.
func (s *stage) measurePeer(ctx context.Context, p peer, process *childproc.Process, before usage, t topic) (went drained, err error) {
	went.rows = s.backlog()
	var began beginning
	err = p.watched(ctx, process, func(ctx context.Context) error {
		if began, err = t.begin(ctx, process.PID()); err != nil {
			return err
		}
		if err := t.await(ctx, went.rows); err != nil {
			return err
		}
		err = poll(ctx, time.Minute, p.marked)
		went.elapsed = time.Since(before.at)
		return err
	})
	if err != nil {
		return went, err
	}
	after, err := s.look(ctx, process.PID())
	if err != nil {
		return went, err
	}
	went.usage, went.first = after.since(before), began.at.Sub(before.at)
	went.going = began.until(after, went, before.at)
	if went.memory, err = peakMemory(process.PID()); err != nil {
		return went, err
	}
	if err := process.Stop(syscall.SIGTERM, peerGrace); err != nil {
		return went, err
	}
	return went, t.expect(ctx, went.rows)
}

// watched calls do with a context that ends when the peer does, or when it is not well.
func (p peer) watched(ctx context.Context, process *childproc.Process, do func(context.Context) error) error {
	return watched(ctx, process, func(ctx context.Context) error { return healthy(ctx, p.health, do) })
}

// begin waits for the topic's first records, and looks at the meters. client is the process that sends them.
func (t topic) begin(ctx context.Context, client int) (b beginning, err error) {
	err = poll(ctx, patience, func(ctx context.Context) error {
		if b.records, err = t.records(ctx); err == nil && b.records == 0 {
			err = errors.New("no record has come")
		}
		return err
	})
	if err != nil {
		return b, err
	}
	b.usage, err = t.stage.look(ctx, client)
	return b, err
}

// until is how it went from the beginning on, for what was started before.
func (b beginning) until(after usage, went drained, started time.Time) lap {
	return lap{usage: after.since(b.usage), rows: went.rows - int(b.records), elapsed: went.elapsed - b.at.Sub(started)}
}

// printLaps prints how ways went once their programs had started: one that is there for months starts rarely.
func (w ways) printLaps(s *stage) {
	t := table{
		title: "Drain: from the first record at the broker on",
		head:  []string{"", "rows/s", "client CPU, µs/row", "PostgreSQL CPU, µs/row", "Kafka CPU, µs/row"},
	}
	for _, way := range w.all() {
		if way.went[0].going.rows <= 0 {
			continue
		}
		cpu := func(value func(usage) time.Duration) string {
			return tenths(median(each(way.went, func(d drained) float64 { return microseconds(value(d.going.usage)) / float64(d.going.rows) })))
		}
		t.add(way.name, spread(each(way.went, func(d drained) float64 { return d.going.speed() }), whole),
			cpu(func(u usage) time.Duration { return u.client }),
			cpu(func(u usage) time.Duration { return u.postgres }),
			cpu(func(u usage) time.Duration { return u.kafka }))
	}
	t.print(s.out)
}
