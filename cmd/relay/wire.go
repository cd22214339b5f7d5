package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/jackc/pgx/v5"

	"outboxrelay/envelope"
	"outboxrelay/internal/settings"
	"outboxrelay/kafkasink"
	"outboxrelay/relay"
	"outboxrelay/store"
)

// openStore makes the store that the settings describe.
func openStore(s *settings.Settings) (*store.Store, error) {
	return store.Open(store.Config{
		URL:           s.Database.URL.Value(),
		BeforeConnect: credentials(s.Database),
		PasswordFrom:  s.Database.Password.From(),
		Schema:        s.Database.Schema,
		Pooled:        s.Database.Pooled,
		Durable:       s.Delivery == settings.ExactlyOnce,
		Connections:   2*s.Workers + 5, // workers, what they have left in the background, one for abandoned rows, and background reads
	})
}

// credentials reads the database's URL and password again for each new connection.
func credentials(d settings.Database) func(context.Context, *pgx.ConnConfig) error {
	return func(_ context.Context, config *pgx.ConnConfig) error {
		url, password, err := d.Read(os.ReadFile)
		if err != nil {
			return err
		}
		if d.URL.File() != "" {
			fresh, err := pgx.ParseConfig(url)
			if err != nil {
				return err // pgx masks the password
			}
			config.Host, config.Port, config.Database = fresh.Host, fresh.Port, fresh.Database
			config.User, config.Password = fresh.User, fresh.Password
			config.TLSConfig, config.Fallbacks = fresh.TLSConfig, fresh.Fallbacks
		}
		if password != "" {
			config.Password = password
		}
		return nil
	}
}

// connection is how the settings reach Kafka. log may be nil.
func connection(s *settings.Settings, log func(string)) kafkasink.Connection {
	c := kafkasink.Connection{Brokers: s.Kafka.Brokers, ClientID: s.Kafka.ClientID, Log: log}
	if tls := s.Kafka.TLS; tls.Enabled {
		c.TLS = &kafkasink.TLS{CAFile: tls.CAFile, CertFile: tls.CertFile, KeyFile: tls.KeyFile}
	}
	if sasl := s.Kafka.SASL; sasl.Mechanism != "" {
		c.SASL = &kafkasink.SASL{
			Mechanism: sasl.Mechanism, Username: sasl.Username,
			Password: func() (string, error) { return sasl.Password.Read(os.ReadFile) },
			Token: func() (string, error) {
				token, err := os.ReadFile(sasl.TokenFile)
				return strings.TrimSpace(string(token)), err
			},
		}
	}
	return c
}

// sinkConfig is how the settings send events.
func sinkConfig(s *settings.Settings, log func(string)) kafkasink.Config {
	return kafkasink.Config{
		Connection:        connection(s, log),
		Topic:             topicOf(s),
		DeadLetterTopic:   deadLetterTopicOf(s),
		Ledger:            ledgerOf(s),
		LedgerPartitions:  s.Instance*relay.SlotsPerInstance + s.Workers,
		TransactionalID:   s.TransactionalID,
		MinInsyncReplicas: s.Kafka.MinInsyncReplicas,
		DeliveryTimeout:   s.Kafka.DeliveryTimeout,
		Compression:       s.Kafka.Compression,
		MaxInFlight:       4 * s.Workers * s.BatchRows,
	}
}

// ledgerOf is the ledger's topic, "" in at-least-once.
func ledgerOf(s *settings.Settings) string {
	if s.Delivery != settings.ExactlyOnce {
		return ""
	}
	return s.LedgerTopic
}

// topicOf gives the topic of each scope. Loading the settings made sure that every
// scope has one.
func topicOf(s *settings.Settings) func(envelope.Scope) string { return topics(s.Kafka.Topic) }

// deadLetterTopicOf gives the topic of each scope's dead letters, nil if row faults are
// parked.
func deadLetterTopicOf(s *settings.Settings) func(envelope.Scope) string {
	if s.RowFaults != settings.DeadLetter {
		return nil
	}
	return topics(s.DeadLetterTopic)
}

func topics(template string) func(envelope.Scope) string {
	return func(scope envelope.Scope) string {
		topic, err := settings.TopicFor(template, scope)
		if err != nil {
			panic(fmt.Sprintf("relay: %v has no topic: %v", scope, err))
		}
		return topic
	}
}

// relayConfig is how the settings relay.
func relayConfig(s *settings.Settings, sink *kafkasink.Sink, db *store.Store) relay.Config {
	var letters relay.DeadLetters
	if s.RowFaults == settings.DeadLetter {
		letters = sink
	}
	var exactly *relay.ExactlyOnce
	if s.Delivery == settings.ExactlyOnce {
		exactly = &relay.ExactlyOnce{Prefix: s.TransactionalID, Instance: s.Instance, Sink: sink, Store: db}
	}
	return relay.Config{
		DeadLetters: letters, ExactlyOnce: exactly, MostFollowed: debug.SetMemoryLimit(-1) / 4, // of the limit, if there is one
		Namespace: s.Namespace, WorkerID: s.WorkerID,
		Lease: s.Lease, DeliveryTimeout: s.Kafka.DeliveryTimeout,
		RetryDelay: s.RetryDelay, RetryMaxDelay: s.RetryMaxDelay,
		BatchRows: s.BatchRows, BatchBytes: int64(s.BatchBytes),
		Workers: s.Workers, PollInterval: s.PollInterval, Grace: s.ShutdownGrace,
	}
}
