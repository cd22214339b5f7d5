package main

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"outboxrelay/envelope"
	"outboxrelay/internal/sample"
)

// transition is one state change of one operation.
type transition struct {
	tenant    string
	operation uuid.UUID
	version   int64
}

// operation is something that an application does for a tenant, as the application last left it.
type operation struct {
	tenant  string
	scope   envelope.Scope
	id      uuid.UUID
	version int64
}

// last is the operation's latest transition, next the one that it will have.
func (o *operation) last() transition { return transition{o.tenant, o.id, o.version} }
func (o *operation) next() transition { return transition{o.tenant, o.id, o.version + 1} }

// application writes transitions, and remembers what it wrote: the truth that the topic is held against.
type application struct {
	sample.Application
	pool       *pgxpool.Pool
	operations []*operation
}

// admit begins an operation of a tenant.
func (a *application) admit(ctx context.Context, tenant string) (*operation, error) {
	scope, err := envelope.Tenant(tenant)
	if err != nil {
		return nil, err
	}
	id, err := a.Admit(ctx, a.pool, scope)
	if err != nil {
		return nil, err
	}
	o := &operation{tenant: tenant, scope: scope, id: id, version: 1}
	a.operations = append(a.operations, o)
	return o, nil
}

// advance writes the next transition of an operation.
func (a *application) advance(ctx context.Context, o *operation, event, state string) (transition, error) {
	if err := a.Advance(ctx, a.pool, o.scope, o.id, event, state); err != nil {
		return transition{}, err
	}
	o.version++
	return o.last(), nil
}

// written is every transition so far. Those of one operation are in order.
func (a *application) written() (all []transition) {
	for _, o := range a.operations {
		for version := int64(1); version <= o.version; version++ {
			all = append(all, transition{o.tenant, o.id, version})
		}
	}
	return all
}
