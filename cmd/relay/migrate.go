package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/settings"
	"outboxrelay/kafkasink"
	"outboxrelay/migrations"
)

// migrate adds the relay's supporting objects to the database.
func (a *app) migrate(ctx context.Context, args []string) error {
	set := flags("migrate")
	options := migrations.Options{}
	set.BoolVar(&options.Standalone, "standalone", false, "make the tables too, where Aksara has not")
	set.StringVar(&options.GrantTo, "grant-to", "", "give `ROLE` the rights that a relay needs")
	set.BoolVar(&options.DryRun, "dry-run", false, "tell what would be done, and do nothing")
	ledger := set.Bool("ledger", false, "make the topic of exactly-once mode too")
	if err := parse(set, args); err != nil {
		return err
	}
	// An owner of the tables may run this where no relay runs.
	optional := []string{"RELAY_NAMESPACE", "RELAY_TENANTS", "RELAY_WORKER_ID", "RELAY_TRANSACTIONAL_ID", "RELAY_INSTANCE"}
	if !*ledger {
		optional = append(optional, "RELAY_KAFKA_BROKERS")
	}
	s, err := a.settings(optional...)
	if err != nil {
		return err
	}
	if s.Database.Pooled {
		return usageError("RELAY_DATABASE_POOLED is true, and migrate needs a session of its own: give it the database's own address, and unset the variable")
	}
	if *ledger {
		if err := a.makeLedger(ctx, s, options.DryRun); err != nil {
			return err
		}
	}
	options.Schema = s.Database.Schema
	options.Report = func(step migrations.Step) { a.reportStep(step, options.DryRun) }
	config, err := pgx.ParseConfig(s.Database.URL.Value())
	if err != nil {
		return err // pgx masks the password
	}
	if err := credentials(s.Database)(ctx, config); err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return migrations.Run(ctx, conn, options)
}

// makeLedger makes the topic of exactly-once mode.
func (a *app) makeLedger(ctx context.Context, s *settings.Settings, dry bool) error {
	if s.Delivery != settings.ExactlyOnce {
		return usageError("--ledger is for exactly-once: set RELAY_DELIVERY=exactly-once")
	}
	became := "would be created if it isn't there"
	if !dry {
		made, err := kafkasink.CreateLedger(ctx, sinkConfig(s, nil))
		if err != nil {
			return err
		}
		became = "is there already; check tells whether it will do"
		if made {
			became = "created"
		}
	}
	fmt.Fprintf(a.stdout, "ledger topic %s: %s\n", s.LedgerTopic, became)
	return nil
}

// reportStep is a line for each object, and in a dry run what would be run.
func (a *app) reportStep(step migrations.Step, dry bool) {
	fmt.Fprintln(a.stdout, stepLine(step))
	if dry && step.SQL != "" {
		fmt.Fprintln(a.stdout, "    "+strings.ReplaceAll(strings.TrimSpace(step.SQL), "\n", "\n    "))
	}
}

// stepLine is a step for people: the object, what was done, and how it stands.
func stepLine(step migrations.Step) string {
	line := fmt.Sprintf("%s: %s", step.Name, step.Outcome)
	if step.Detail != "" {
		line += " (" + step.Detail + ")"
	}
	return printable(line)
}
