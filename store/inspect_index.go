package store

import (
	"context"

	"outboxrelay/migrations"
)

// indexes looks at the two indexes that claims rely on. Without them they are slower.
func (i *inspection) indexes(ctx context.Context) error {
	i.supportingIndex()
	return i.pendingIndex(ctx)
}

func (i *inspection) supportingIndex() {
	const check = "index"
	const slower = "; claims read the transitions table instead, which is slower"
	seen := "index " + migrations.IndexName + " is " + i.index.String()
	switch i.index {
	case migrations.Ready:
		i.ok(check, seen)
	case migrations.NameTaken:
		i.warn(check, seen+slower, "rename what has its name, then run relay migrate as the owner of the tables")
	case migrations.Invalid:
		i.warn(check, seen+slower, "wait for the build, or run relay migrate again as the owner of the tables")
	default:
		i.warn(check, seen+slower, "run relay migrate as the owner of the tables")
	}
}

// pendingIndex looks for Aksara's own, whatever its name.
func (i *inspection) pendingIndex(ctx context.Context) error {
	const check = "pending index"
	var there bool
	err := i.conn.QueryRow(ctx, `
		select exists (
		  select from pg_index x
		  join pg_class t on t.oid = x.indrelid join pg_namespace n on n.oid = t.relnamespace
		  join pg_class c on c.oid = x.indexrelid join pg_am am on am.oid = c.relam
		  where n.nspname = $1 and t.relname = $2 and am.amname = 'btree'
		    and x.indisvalid and x.indisready and x.indislive
		    and pg_get_indexdef(c.oid, 1, false) = 'tenant_scope'
		    and pg_get_indexdef(c.oid, 2, false) = 'next_attempt_at'
		    and pg_get_indexdef(c.oid, 3, false) = 'id'
		    and pg_get_expr(x.indpred, x.indrelid) = '(exported_at IS NULL)')`, i.schema, outbox).Scan(&there)
	if err != nil {
		return err
	}
	if there {
		i.ok(check, "Aksara's index of pending rows is there")
		return nil
	}
	i.warn(check, "Aksara's index of pending rows is missing or invalid: each claim reads and sorts all rows, and fails when that takes too long",
		"as the owner run: create index concurrently idx_aksara_operation_outbox_pending on "+quote(i.schema, outbox)+
			" (tenant_scope, next_attempt_at, id) where exported_at is null")
	return nil
}
