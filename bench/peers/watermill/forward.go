package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	watersql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/components/forwarder"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
)

// forward sends what is in Watermill's table, until ctx ends.
func forward(ctx context.Context, o options) error {
	pool, err := pgxpool.New(ctx, o.database)
	if err != nil {
		return err
	}
	defer pool.Close()
	subscriber, err := subscriberOn(pool, o.batch)
	if err != nil {
		return err
	}
	publisher, err := kafka.NewPublisher(kafka.PublisherConfig{
		Brokers:               o.brokers,
		Marshaler:             kafka.NewWithPartitioningMarshaler(key),
		OverwriteSaramaConfig: producer(),
	}, logger())
	if err != nil {
		return fmt.Errorf("connect to Kafka: %w", err)
	}
	f, err := forwarder.NewForwarder(subscriber, publisher, logger(), forwarder.Config{ForwarderTopic: source})
	if err != nil {
		return err
	}
	return errors.Join(f.Run(ctx), publisher.Close())
}

// subscriberOn reads Watermill's table. A batch of 0 is Watermill's default.
func subscriberOn(conn watersql.Conn, batch int) (*watersql.Subscriber, error) {
	return watersql.NewSubscriber(watersql.BeginnerFromPgx(conn), watersql.SubscriberConfig{
		SchemaAdapter:  watersql.DefaultPostgreSQLSchema{SubscribeBatchSize: batch},
		OffsetsAdapter: watersql.DefaultPostgreSQLOffsetsAdapter{},
	}, logger())
}

// producer is Watermill's own, with the guarantees that the relay has: what is sent counts once all replicas in sync have
// it, and a retry makes no duplicate.
func producer() *sarama.Config {
	config := kafka.DefaultSaramaSyncPublisherConfig()
	config.Version = sarama.V3_6_0_0
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1 // idempotence asks for it
	return config
}

func key(_ string, m *message.Message) (string, error) { return m.Metadata.Get(keyField), nil }

// logger prints errors and little else.
func logger() watermill.LoggerAdapter { return watermill.NewStdLogger(false, false) }
