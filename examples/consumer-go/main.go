// Command consumer-go is a model of a consumer: it keeps the latest state of each operation in PostgreSQL and counts the
// operation's events, each once however often it is delivered, and takes no older event for the latest.
//
// It ends at any error and expects to be started again: the offset of what was not handled is not committed, and what
// comes again is recognised. See ../README.md for its environment.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
	"outboxrelay/inbox"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := consume(ctx); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func consume(ctx context.Context) error {
	db, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	group := os.Getenv("KAFKA_GROUP")
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Getenv("KAFKA_BROKERS"), ",")...),
		kgo.ConsumeTopics(os.Getenv("KAFKA_TOPIC")),
		kgo.ConsumerGroup(group),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(), // no partition moves while its records are being handled
	)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()

	for {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		for _, record := range fetches.Records() {
			if err := handle(ctx, db, group, record); err != nil {
				return fmt.Errorf("record %s/%d/%d: %w", record.Topic, record.Partition, record.Offset, err)
			}
		}
		// Only now: a crash before this line brings the records again, one after an earlier commit would lose them.
		if err := client.CommitUncommittedOffsets(ctx); err != nil {
			return err
		}
		client.AllowRebalance()
	}
}

// handle takes one event and does what it calls for, in one transaction.
func handle(ctx context.Context, db *pgx.Conn, consumer string, r *kgo.Record) error {
	record := envelope.Record{Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		record.Headers = append(record.Headers, envelope.Header{Key: h.Key, Value: h.Value})
	}
	event, err := envelope.Parse(record)
	if err != nil {
		return err // also for an unknown version: passed over, the event would be lost
	}
	var data struct {
		State string `json:"to_state"`
	}
	if err := json.Unmarshal(event.Data, &data); err != nil || data.State == "" {
		return errors.Join(errors.New("the payload has no to_state"), err)
	}
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		outcome, err := inbox.Take(ctx, tx, consumer, event)
		if err != nil {
			return err
		}
		switch outcome {
		case inbox.Fresh:
			_, err = tx.Exec(ctx, `
				insert into operation_state (operation, source, state, version, events) values ($1, $2, $3, $4, 1)
				on conflict (operation) do update
				set state = excluded.state, version = excluded.version, events = operation_state.events + 1`,
				event.OperationID, event.Source(), data.State, event.StateVersion)
		case inbox.Stale: // it counts, but a newer one has given the state
			_, err = tx.Exec(ctx, "update operation_state set events = events + 1 where operation = $1", event.OperationID)
		case inbox.Duplicate: // nothing to do
		}
		return err
	})
}
