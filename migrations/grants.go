package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// grant is one statement that gives privileges, and how to see that they are there, from whatever source.
type grant struct {
	name  string
	file  string
	owner owner
	held  string // $1 role's oid, $2 schema; null or no row: not held
}

// grants returns the smallest set that a relay works with.
func grants() []grant {
	return []grant{{
		name:  "USAGE on the schema",
		file:  "grant_schema",
		owner: ownerOfSchema(),
		held:  `select has_schema_privilege($1::oid, oid, 'USAGE') from pg_namespace where nspname = $2`,
	}, {
		name:  "SELECT on " + outbox,
		file:  "grant_outbox_select",
		owner: ownerOf(outbox),
		held: `select has_table_privilege($1::oid, c.oid, 'SELECT')
			from pg_class c join pg_namespace n on n.oid = c.relnamespace
			where n.nspname = $2 and c.relname = 'aksara_operation_outbox'`,
	}, {
		name:  "UPDATE on six columns of " + outbox,
		file:  "grant_outbox_update",
		owner: ownerOf(outbox),
		held: `select bool_and(has_column_privilege($1::oid, c.oid, name, 'UPDATE'))
			from pg_class c join pg_namespace n on n.oid = c.relnamespace
			cross join unnest(array['claimed_by', 'claim_expires_at', 'export_attempts', 'exported_at', 'last_error',
			                        'next_attempt_at']) name
			where n.nspname = $2 and c.relname = 'aksara_operation_outbox'`,
	}, {
		name:  "SELECT on two columns of " + operations,
		file:  "grant_operations",
		owner: ownerOf(operations),
		held: `select bool_and(has_column_privilege($1::oid, c.oid, name, 'SELECT'))
			from pg_class c join pg_namespace n on n.oid = c.relnamespace
			cross join unnest(array['id', 'application_namespace']) name
			where n.nspname = $2 and c.relname = 'aksara_operations'`,
	}, {
		name:  "SELECT on three columns of " + transitions,
		file:  "grant_transitions",
		owner: ownerOf(transitions),
		held: `select bool_and(has_column_privilege($1::oid, c.oid, name, 'SELECT'))
			from pg_class c join pg_namespace n on n.oid = c.relnamespace
			cross join unnest(array['id', 'operation_id', 'state_version']) name
			where n.nspname = $2 and c.relname = 'aksara_operation_transitions'`,
	}}
}

// ensureGrants gives the role what it lacks.
func (m *migration) ensureGrants(ctx context.Context, role uint32) error {
	if m.GrantTo == "" {
		return nil
	}
	for _, g := range grants() {
		err := m.ensure(ctx, object{
			name:  g.name + " for role " + quote(m.GrantTo),
			file:  g.file,
			made:  Granted,
			owner: g.owner,
			there: func(ctx context.Context) (bool, error) { return m.holds(ctx, g, role) },
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *migration) holds(ctx context.Context, g grant, role uint32) (bool, error) {
	var held *bool
	err := m.conn.QueryRow(ctx, g.held, role, m.Schema).Scan(&held)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return held != nil && *held, err
}

// findRole returns the oid of the role that is to get privileges. A name that no role can have, such as public, is not
// found either.
func (m *migration) findRole(ctx context.Context) (oid uint32, err error) {
	if m.GrantTo == "" {
		return 0, nil
	}
	err = m.look(ctx, "looking for role "+quote(m.GrantTo), func(ctx context.Context) error {
		return m.conn.QueryRow(ctx, `select oid from pg_roles where rolname::text = $1`, m.GrantTo).Scan(&oid)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("there is no role %s to grant to: create it first (create role %[1]s login), or correct the name; upper and lower case differ",
			quote(m.GrantTo))
	}
	return oid, err
}
