package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"outboxrelay/envelope"
	"outboxrelay/internal/sample"
	"outboxrelay/migrations"
)

const (
	databaseName = "shop"
	ownerRole    = "app"
	relayRole    = "relay" // with the smallest rights
)

var application = sample.Application{Namespace: "shop"}

// scopes are whose events there are: some tenants', and those of nobody.
func scopes() []envelope.Scope {
	all := []envelope.Scope{envelope.NonTenant()}
	for _, id := range []string{"north", "south", "Zürich 3", "a/b"} {
		scope, err := envelope.Tenant(id)
		if err != nil {
			panic(err) // the names are legal ones
		}
		all = append(all, scope)
	}
	return all
}

// makeDatabase makes roles and tables.
func (s *stage) makeDatabase(ctx context.Context) error {
	super, err := pgx.Connect(ctx, s.postgres.URL("postgres"))
	if err != nil {
		return err
	}
	defer super.Close(context.WithoutCancel(ctx))
	for _, statement := range []string{
		`create role ` + ownerRole + ` login`, `create role ` + relayRole + ` login`,
		`create database ` + databaseName + ` owner ` + ownerRole,
	} {
		if _, err := super.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	owner, err := pgx.Connect(ctx, s.url(ownerRole))
	if err != nil {
		return err
	}
	defer owner.Close(context.WithoutCancel(ctx))
	return migrations.Run(ctx, owner, migrations.Options{Standalone: true, GrantTo: relayRole})
}

// url is the database's address for a role, past all proxies.
func (s *stage) url(role string) string {
	address, err := url.Parse(s.postgres.URL(databaseName))
	if err != nil {
		panic(err) // the server made it
	}
	address.User = url.User(role)
	return address.String()
}

// pool connects a role, past all proxies.
func (s *stage) pool(ctx context.Context, role string) (*pgxpool.Pool, error) {
	return pgxpool.New(ctx, s.url(role))
}
