package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// privileges looks for each right that the statements need, from whatever source the
// role has it. A column that is missing is not told of here.
func (i *inspection) privileges(ctx context.Context) error {
	for _, n := range i.needs() {
		names := make([]string, len(n.read))
		for c := range n.read {
			names[c] = n.read[c].name
		}
		missing, err := i.missing(ctx, n.table, "SELECT", names)
		if err != nil {
			return err
		}
		// The smallest grants are those of relay migrate --grant-to: of the outbox whole rows.
		if len(missing) > 0 && n.table == outbox {
			i.lacks("SELECT on "+quote(i.schema, n.table), "select on "+quote(i.schema, n.table))
		} else if len(missing) > 0 {
			i.lacksColumns("SELECT", n.table, missing)
		}
		if missing, err = i.missing(ctx, n.table, "UPDATE", n.update); err != nil {
			return err
		}
		if len(missing) > 0 {
			i.lacksColumns("UPDATE", n.table, missing)
		}
	}
	if !i.lacking {
		i.ok("privileges", fmt.Sprintf("role %q has all that are needed", i.role.name))
	}
	return nil
}

// missing is those of a table's columns for which the role lacks a privilege.
func (i *inspection) missing(ctx context.Context, table, privilege string, columns []string) ([]string, error) {
	return collect(ctx, i, pgx.RowTo[string], `
		select a.attname::text
		from unnest($4::text[]) with ordinality as want(name, position)
		join pg_namespace n on n.nspname = $1
		join pg_class c on c.relnamespace = n.oid and c.relname = $2
		join pg_attribute a on a.attrelid = c.oid and a.attname = want.name and not a.attisdropped
		where not has_column_privilege(c.oid, a.attnum, $3)
		order by want.position`, table, privilege, columns)
}

func (i *inspection) lacksColumns(privilege, table string, columns []string) {
	right := fmt.Sprintf("%s (%s) on %s", privilege, strings.Join(columns, ", "), quote(i.schema, table))
	i.lacks(right, strings.ToLower(privilege)+right[len(privilege):])
}

// lacks tells of a missing right, and the statement that gives it.
func (i *inspection) lacks(right, grant string) {
	i.lacking = true
	i.fail("privileges", fmt.Sprintf("role %q lacks %s", i.role.name, right),
		fmt.Sprintf("as the owner run: grant %s to %s", grant, quote(i.role.name)))
}
