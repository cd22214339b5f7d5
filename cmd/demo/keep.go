package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	writeEvery = 400 * time.Millisecond
	tellEvery  = 10 * time.Second
)

// howToGoOn is the end of a demonstration that does not stay up.
func (d *demo) howToGoOn() {
	d.screen.act("How to go on", strings.Join([]string{
		"make demo-keep           the same, and then it stays up for playing with psql and kcat",
		"go build ./cmd/relay     the program; relay --help lists what it does beside relaying",
		"docs/configuration.md    every variable that it takes",
	}, "\n"))
	d.screen.note("Done in %s; servers and folders are being removed.", since(time.Since(d.screen.start)))
}

// stayUp says where everything is, and goes on writing until ctx ends. It returns why it did.
func (d *demo) stayUp(ctx context.Context) error {
	d.consumer.close()
	if err := execute(ctx, d.postgres.url("postgres"), unwatchSQL); err != nil {
		return interrupted(ctx, err)
	}
	if err := d.showAddresses(); err != nil {
		return err
	}
	write, tell := time.NewTicker(writeEvery), time.NewTicker(tellEvery)
	defer write.Stop()
	defer tell.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-write.C:
			err = d.writeSomething(ctx)
		case <-tell.C:
			err = d.tellCounts(ctx)
		}
		if err != nil && ctx.Err() == nil {
			d.screen.note("%v", err) // the user may do anything to the tables
		}
	}
}

func (d *demo) showAddresses() error {
	file, err := d.program.writeEnvironment()
	if err != nil {
		return err
	}
	lines := []string{
		"psql '" + d.postgres.url("postgres") + "'",
		"kcat -C -b " + d.kafka.ListenAddrs()[0] + " -t " + topic + ` -f '%h\n%k %s\n\n'`,
		"env $(cat " + file + ") " + d.program.path + " status",
		"env $(cat " + file + ") RELAY_HTTP_ADDRESS=off " + d.program.path + "   (one more relay, to kill)",
		"curl http://" + d.program.address + "/metrics",
		"tail -f " + d.program.log(),
	}
	d.screen.act("It stays up, and the application goes on writing", strings.Join(lines, "\n"))
	d.screen.note("Ctrl-C ends it and removes everything.\n")
	return nil
}

// writeSomething writes one transition of a random tenant.
func (d *demo) writeSomething(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the application could not write for %s", patience))
	defer cancel()
	tenants := append(relayed(), notRelayed)
	_, err := d.application.admit(ctx, tenants[rand.IntN(len(tenants))])
	return err
}

func (d *demo) tellCounts(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, d.postgres.url("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var relayed, marked, others int
	err = conn.QueryRow(ctx, `select count(*) filter (where tenant_scope <> $1), count(exported_at), count(*) filter (where tenant_scope = $1)
		from aksara_operation_outbox`, notRelayed).Scan(&relayed, &marked, &others)
	if err != nil {
		return err
	}
	d.screen.happened(written, "", "%d events, of which %d are exported; %d records in the topic; %d events of tenant %s wait for ever",
		relayed, marked, d.kafka.records(), others, notRelayed)
	return nil
}
