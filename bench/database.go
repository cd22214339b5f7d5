package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"

	"outboxrelay/envelope"
	"outboxrelay/internal/sample"
	"outboxrelay/migrations"
)

const (
	ownerRole = "app"
	relayRole = "relay"
)

var application = sample.Application{Namespace: "shop"}

// reason stands in each transition, so that payloads have about 300 bytes.
var reason = strings.Repeat("waits for the provider ", 5)[:100]

// variant is what the tables have beside what Aksara gives them.
type variant struct {
	name  string
	index bool // the relay's supporting index and storage parameters
}

var variants = []variant{
	{"supporting index", true},
	{"Aksara's schema alone", false},
}

// database is one with Aksara's tables.
type database struct {
	name  string
	stage *stage
}

func (s *stage) makeRoles(ctx context.Context) error {
	return s.execute(ctx, "postgres", `create role `+ownerRole+` login`, `create role `+relayRole+` login`,
		`create role `+peerRole+` login replication bypassrls`)
}

// url is the database's address for one role.
func (d database) url(role string) string {
	address, err := url.Parse(d.stage.postgres.URL(d.name))
	if err != nil {
		panic(err) // the server made it
	}
	address.User = url.User(role)
	return address.String()
}

// newDatabase makes a database without rows.
func (s *stage) newDatabase(ctx context.Context, v variant) (database, error) {
	d := database{name: s.newName("db"), stage: s}
	if err := s.execute(ctx, "postgres", `create database `+d.name+` owner `+ownerRole); err != nil {
		return d, err
	}
	if err := d.migrate(ctx); err != nil {
		return d, err
	}
	statements := []string{`alter table aksara_operation_transitions alter column reason_code set default '` + reason + `'`}
	if !v.index {
		statements = append(statements, `drop index relay_outbox_operation`,
			`alter table aksara_operation_outbox reset (fillfactor, autovacuum_vacuum_scale_factor,
				autovacuum_vacuum_threshold, autovacuum_vacuum_cost_delay)`)
	}
	return d, s.execute(ctx, d.name, statements...)
}

func (d database) migrate(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, d.url(ownerRole))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return migrations.Run(ctx, conn, migrations.Options{Standalone: true, GrantTo: relayRole})
}

// copy makes a database with the same rows on the same pages.
func (d database) copy(ctx context.Context) (database, error) {
	c := database{name: d.stage.newName("db"), stage: d.stage}
	return c, d.stage.execute(ctx, "postgres", `create database `+c.name+` template `+d.name+` owner `+ownerRole)
}

// drop removes the database.
func (d database) drop(ctx context.Context) error {
	return d.stage.execute(ctx, "postgres", `drop database `+d.name+` with (force)`)
}

// fill writes operations for each of some tenants, a few at a time in turn, as they come in an application. Vacuum then
// does at once what the server would do in the background, in the middle of a measurement.
func (d database) fill(ctx context.Context, tenants []envelope.Scope, operations int) error {
	const atOnce = 500
	config, err := pgx.ParseConfig(d.stage.postgres.URL(d.name))
	if err != nil {
		return err
	}
	config.RuntimeParams["session_replication_role"] = "replica" // no foreign keys are checked: they hold, and it takes long
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for done := 0; done < operations; done += atOnce {
		for _, tenant := range tenants {
			if err := application.Fill(ctx, conn, tenant, min(atOnce, operations-done), versions); err != nil {
				return err
			}
		}
	}
	return d.stage.execute(ctx, d.name, `vacuum analyze`)
}

// fillAnew is fill for a table without rows that is to have very many. The indexes are made in the end, which takes less than half the time:
// one that isn't ready isn't written to.
func (d database) fillAnew(ctx context.Context, tenants []envelope.Scope, operations int) error {
	err := d.stage.execute(ctx, d.name, `update pg_index set indisready = false, indisvalid = false
		where indrelid in ('aksara_operations'::regclass, 'aksara_operation_transitions'::regclass, 'aksara_operation_outbox'::regclass)`)
	if err != nil {
		return err
	}
	if err := d.fill(ctx, tenants, operations); err != nil {
		return err
	}
	return d.stage.execute(ctx, d.name, `reindex table aksara_operations`, `reindex table aksara_operation_transitions`,
		`reindex table aksara_operation_outbox`)
}

// scopes are n tenants.
func scopes(n int) (all []envelope.Scope) {
	for i := range n {
		scope, err := envelope.Tenant(fmt.Sprintf("tenant-%02d", i+1))
		if err != nil {
			panic(err) // the name is a legal one
		}
		all = append(all, scope)
	}
	return all
}

// execute runs statements as the superuser.
func (s *stage) execute(ctx context.Context, database string, statements ...string) error {
	return s.connected(ctx, database, func(conn *pgx.Conn) error {
		for _, statement := range statements {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
}

// connected calls do with a superuser's connection.
func (s *stage) connected(ctx context.Context, database string, do func(*pgx.Conn) error) (err error) {
	conn, err := pgx.Connect(ctx, s.postgres.URL(database))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	return do(conn)
}

// newName is a name that nothing has yet.
func (s *stage) newName(prefix string) string {
	s.named++
	return fmt.Sprintf("%s%d", prefix, s.named)
}
