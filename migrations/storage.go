package migrations

import "context"

// ensureStorage sets all storage parameters when one differs, be it in spelling.
func (m *migration) ensureStorage(ctx context.Context) error {
	const query = `
		select count(*) = 4
		from pg_namespace n
		join pg_class c on c.relnamespace = n.oid
		cross join pg_options_to_table(c.reloptions) o
		join (values ('fillfactor', '45'), ('autovacuum_vacuum_scale_factor', '0.02'),
		             ('autovacuum_vacuum_threshold', '5000'), ('autovacuum_vacuum_cost_delay', '0')) want(name, value)
		  on want.name = o.option_name and want.value = o.option_value
		where n.nspname = $1 and c.relname = $2`
	return m.ensure(ctx, object{
		name:  "storage parameters of " + outbox,
		file:  "storage",
		made:  Set,
		owner: ownerOf(outbox),
		there: func(ctx context.Context) (there bool, err error) {
			err = m.conn.QueryRow(ctx, query, m.Schema, outbox).Scan(&there)
			return there, err
		},
	})
}
