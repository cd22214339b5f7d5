package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"outboxrelay/migrations"
)

// migrate adds the relay's supporting objects to the database.
func (a *app) migrate(ctx context.Context, args []string) error {
	set := flags("migrate")
	options := migrations.Options{Report: a.reportStep}
	set.BoolVar(&options.Standalone, "standalone", false, "")
	set.StringVar(&options.GrantTo, "grant-to", "", "")
	set.BoolVar(&options.DryRun, "dry-run", false, "")
	if err := parse(set, args); err != nil {
		return err
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	if s.Database.Pooled {
		return usageError("RELAY_DATABASE_POOLED is true, and migrate needs a session of its own: give it the database's own address, and unset the variable")
	}
	options.Schema = s.Database.Schema
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

func (a *app) reportStep(step migrations.Step) {
	fmt.Fprintln(a.stdout, stepLine(step))
	if step.SQL != "" {
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
