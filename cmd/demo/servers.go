package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"outboxrelay/internal/pgserver"
	"outboxrelay/migrations"
)

const (
	database   = "shop"
	namespace  = "shop"
	topic      = "aksara.operation.transitions"
	partitions = 6
	ledger     = "relay.ledger"
)

// postgres is the database server, with an application's database.
type postgres struct{ *pgserver.Server }

// url is the application's database for one role.
func (p postgres) url(role string) string {
	address, err := url.Parse(p.URL(database))
	if err != nil {
		panic(err) // we made it
	}
	address.User = url.User(role)
	return address.String()
}

// startPostgres starts a server and makes a database whose tables belong to role app. Role relay gets what a relay needs.
func startPostgres(ctx context.Context) (p postgres, version string, err error) {
	server, err := pgserver.Start(ctx, pgserver.Options{Download: true})
	if err != nil {
		return postgres{}, "", err
	}
	p = postgres{server}
	err = execute(ctx, p.URL("postgres"), `create role app login`, `create role relay login`, `create database `+database+` owner app`)
	if err == nil {
		version, err = p.migrate(ctx)
	}
	if err != nil {
		return postgres{}, "", errors.Join(err, server.Stop())
	}
	return p, version, nil
}

// migrate does what "relay migrate --standalone --grant-to relay" does, and tells the server's version.
func (p postgres) migrate(ctx context.Context) (version string, err error) {
	conn, err := pgx.Connect(ctx, p.url("app"))
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	version, _, _ = strings.Cut(conn.PgConn().ParameterStatus("server_version"), " ")
	return version, migrations.Run(ctx, conn, migrations.Options{Schema: "public", Standalone: true, GrantTo: "relay"})
}

func execute(ctx context.Context, url string, statements ...string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// kafka is the brokers, all in this process.
type kafka struct{ *kfake.Cluster }

// startKafka starts three brokers and makes the topic, with the replicas that the relay asks for unless told otherwise.
func startKafka() (kafka, error) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		return kafka{}, fmt.Errorf("start Kafka brokers: %w", err)
	}
	k := kafka{cluster}
	if err := cluster.CreateTopic(topic, partitions, map[string]string{"min.insync.replicas": "2"}); err != nil {
		cluster.Close()
		return kafka{}, fmt.Errorf("create topic: %w", err)
	}
	if err := cluster.CreateTopic(ledger, 8, map[string]string{"min.insync.replicas": "2", "cleanup.policy": "compact"}); err != nil {
		cluster.Close()
		return kafka{}, fmt.Errorf("create the ledger's topic: %w", err)
	}
	return k, nil
}

// refuseNextSend has the next send answered as if the right to write were missing. Nothing is written.
func (k kafka) refuseNextSend() {
	k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.TopicAuthorizationFailed})
}

// atNextSend calls do when the next send has reached a broker. The events are written when do has returned.
func (k kafka) atNextSend(do func()) { k.atNext(kmsg.Produce, do) }

// atNextCommit calls do when the end of a transaction has reached a broker. It is carried out when do has returned.
func (k kafka) atNextCommit(do func()) { k.atNext(kmsg.EndTxn, do) }

func (k kafka) atNext(request kmsg.Key, do func()) {
	k.ControlKey(int16(request), func(kmsg.Request) (kmsg.Response, error, bool) {
		k.DropControl()
		do()
		return nil, nil, false
	})
}

// records is how many records the topic holds.
func (k kafka) records() (n int64) {
	for _, partition := range k.PartitionInfos(topic) {
		n += partition.HighWatermark
	}
	return n
}
