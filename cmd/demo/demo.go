package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"outboxrelay/internal/childproc"
	"outboxrelay/internal/sample"
)

const (
	lease      = "9s"
	notRelayed = "ash" // a tenant that the relay is not told of
)

// relayed are the tenants that the relay is told of.
func relayed() []string { return []string{"oak", "elm", "fir"} }

// demo is the stage: servers, programs, and who watches them.
type demo struct {
	options options
	screen  *screen
	fail    func(error) // ends the story

	postgres    postgres
	kafka       kafka
	program     *relayProgram
	relay       *relayProcess
	application *application
	journal     *journal
	consumer    *consumer
	repeated    transition // the event that the story makes come twice; none in exactly-once mode

	closers []func() error
}

// onClose has close call f before what was asked for earlier.
func (d *demo) onClose(f func() error) { d.closers = append(d.closers, f) }

// close clears away everything, the latest first.
func (d *demo) close() (err error) {
	for _, f := range slices.Backward(d.closers) {
		err = errors.Join(err, f())
	}
	d.closers = nil
	return err
}

// prepare starts the servers, makes the tables and finds the relay.
func (d *demo) prepare(ctx context.Context) error {
	d.screen.act("The stage", "Everything here belongs to this demonstration alone and is gone when it ends.")
	steps := []func(context.Context) error{d.preparePostgres, d.prepareKafka, d.prepareRelay, d.prepareWatch}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return interrupted(ctx, err)
		}
	}
	return nil
}

// interrupted prefers the reason for which ctx ended.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (d *demo) preparePostgres(ctx context.Context) error {
	d.screen.note("A PostgreSQL server: from this machine, else downloaded once into your cache folder ...")
	server, version, err := startPostgres(ctx)
	if err != nil {
		return err
	}
	d.postgres = server
	d.onClose(server.Stop)
	d.screen.happened(ready, "", "PostgreSQL %s: the tables, the relay's index, role app that writes and role relay", version)

	pool, err := pgxpool.New(ctx, server.url("app"))
	if err != nil {
		return err
	}
	d.onClose(func() error { pool.Close(); return nil })
	d.application = &application{Application: sample.Application{Namespace: namespace}, pool: pool}
	return nil
}

func (d *demo) prepareKafka(context.Context) error {
	cluster, err := startKafka()
	if err != nil {
		return err
	}
	d.kafka = cluster
	d.onClose(func() error { cluster.Close(); return nil })
	d.screen.happened(ready, "", "Kafka: three brokers inside this process, topic %s with %d partitions", topic, partitions)
	return nil
}

func (d *demo) prepareRelay(ctx context.Context) error {
	dir, err := childproc.NewTempDir("relay-demo-", nil)
	if err != nil {
		return err
	}
	d.onClose(dir.Remove)
	path, err := relayPath(ctx, d.options.relay, dir.Path)
	if err != nil {
		return err
	}
	d.screen.happened(ready, "", "the relay program")
	ports, err := childproc.FreePorts(1)
	if err != nil {
		return err
	}
	d.program = &relayProgram{path: path, dir: dir, address: childproc.Loopback(ports[0])}
	d.program.environment = []string{
		"RELAY_DATABASE_URL=" + d.postgres.url("relay"),
		"RELAY_NAMESPACE=" + namespace,
		"RELAY_TENANTS=" + strings.Join(relayed(), ","),
		"RELAY_KAFKA_BROKERS=" + strings.Join(d.kafka.ListenAddrs(), ","),
		"RELAY_KAFKA_TOPIC=" + topic,
		"RELAY_KAFKA_DELIVERY_TIMEOUT=1s",
		"RELAY_CLAIM_LEASE=" + lease,
		"RELAY_HTTP_ADDRESS=" + d.program.address,
	}
	if d.options.once {
		d.program.environment = append(d.program.environment,
			"RELAY_DELIVERY="+exactlyOnce, "RELAY_TRANSACTIONAL_ID="+namespace, "RELAY_INSTANCE=0", "RELAY_LEDGER_TOPIC="+ledger)
	}
	d.onClose(func() error {
		if d.relay != nil {
			d.relay.kill()
		}
		return nil
	})
	return nil
}

// prepareWatch begins to look at both ends: the table, and the topic.
func (d *demo) prepareWatch(ctx context.Context) (err error) {
	d.journal = newJournal(d.screen)
	if err := watchTable(ctx, d.postgres.url("postgres"), d.journal.heard, d.fail); err != nil {
		return err
	}
	d.consumer, err = consume(d.kafka.ListenAddrs(), topic, d.journal.arrived)
	if err != nil {
		return err
	}
	d.onClose(func() error { d.consumer.close(); return nil })
	d.screen.happened(ready, "", "a consumer of the topic, and a trigger that tells what happens to the outbox")
	return nil
}

// startRelay runs the relay program until the story kills or stops it.
func (d *demo) startRelay(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the relay was not ready within %s", patience))
	defer cancel()
	d.relay, err = d.program.start(ctx, d.fail)
	return err
}
