package store_test

import (
	"fmt"
	"strings"
)

const (
	outboxTable      = `public.aksara_operation_outbox`
	operationsTable  = `public.aksara_operations`
	transitionsTable = `public.aksara_operation_transitions`

	withoutIndex = `drop index public.relay_outbox_operation`
	aksaraUsing  = `using (tenant_scope = current_setting('aksara.current_tenant_id', true))`
	dropPolicy   = `drop policy aksara_operation_outbox_tenant_policy on ` + outboxTable
)

func schemaBreakages() []breakage {
	return []breakage{
		{"no outbox", `drop table ` + outboxTable, ``,
			[]finding{fault("tables", `"public" has no table aksara_operation_outbox`, "relay migrate --standalone")}},
		{"no operations", `drop table ` + operationsTable + ` cascade`, ``,
			[]finding{fault("tables", `"public" has no table aksara_operations`, "run Aksara's migrations (aksara makemigrations, then aksara migrate: ")}},
		{"no transitions", withoutIndex + `; drop table ` + transitionsTable + ` cascade`, ``,
			[]finding{fault("tables", `"public" has no table aksara_operation_transitions`, "Aksara's migrations")}},
		{"transitions aren't needed with the index", `drop table ` + transitionsTable + ` cascade`, ``, nil},
		{"tables elsewhere", `create schema app; alter table ` + outboxTable + ` set schema app`, `alter table app.aksara_operation_outbox set schema public`,
			[]finding{fault("tables", "aksara_operation_outbox", `RELAY_DATABASE_SCHEMA to the schema that has them, such as "app"`)}},
		{"wrong type", `alter table ` + outboxTable + ` alter created_at type timestamp`, `alter table ` + outboxTable + ` alter created_at type timestamptz`,
			[]finding{fault("columns", "aksara_operation_outbox.created_at is timestamp without time zone: timestamp with time zone is needed", "RELAY_DATABASE_SCHEMA")}},
		{"missing column", `alter table ` + operationsTable + ` drop application_namespace cascade`,
			`alter table ` + operationsTable + ` add application_namespace varchar(255) not null`,
			[]finding{fault("columns", "aksara_operations.application_namespace is missing: character varying is needed", "Aksara")}},
		{"only reads", `alter role ROLE set default_transaction_read_only = on`, `alter role ROLE reset default_transaction_read_only`,
			[]finding{fault("writable", "only read", "default_transaction_read_only")}},
		{"unforeseen", `alter role ROLE set row_security = off`, `alter role ROLE reset row_security`,
			[]finding{fault("statements", "row-level security", "mend")}},
	}
}

func privilegeBreakages() []breakage {
	all := []breakage{
		{"no usage", `revoke usage on schema public from ROLE, public`, `grant usage on schema public to public`,
			[]finding{fault("privileges", `USAGE on schema "public"`, `grant usage on schema "public" to ROLE`)}},
		{"no select on outbox", `revoke select on ` + outboxTable + ` from ROLE`, ``,
			[]finding{fault("privileges", `SELECT on "public"."aksara_operation_outbox"`, `grant select on "public"."aksara_operation_outbox" to ROLE`)}},
	}
	for _, column := range []string{"claimed_by", "claim_expires_at", "export_attempts", "exported_at", "last_error", "next_attempt_at"} {
		all = append(all, withoutColumn("update", outboxTable, column, ""))
	}
	for _, column := range []string{"id", "application_namespace"} {
		all = append(all, withoutColumn("select", operationsTable, column, ""))
	}
	for _, column := range []string{"id", "operation_id", "state_version"} {
		all = append(all, withoutColumn("select", transitionsTable, column, withoutIndex))
	}
	all = append(all, breakage{"rights on transitions aren't needed with the index", `revoke all on ` + transitionsTable + ` from ROLE`, ``, nil})
	return all
}

// withoutColumn takes the role a privilege on one column, and with before set the
// supporting index first.
func withoutColumn(privilege, table, column, before string) breakage {
	name := strings.TrimPrefix(table, "public.")
	right := fmt.Sprintf(`%s (%s) on "public"."%s"`, privilege, column, name)
	b := breakage{
		name:  "no " + privilege + " on " + name + "." + column,
		broke: fmt.Sprintf(`%s; revoke %s (%s) on %s from ROLE`, before, privilege, column, table),
		want:  []finding{fault("privileges", strings.ToUpper(privilege)+right[len(privilege):], "grant "+right+" to ROLE")},
	}
	if before != "" {
		b.want = append(b.want, warning("index", "is missing", "relay migrate"))
	}
	return b
}

func rowSecurityBreakages() []breakage {
	all := []breakage{
		{"superuser", `alter role ROLE superuser`, `alter role ROLE nosuperuser`,
			[]finding{warning("row security", "bypasses row security: it is a superuser", "relay migrate --grant-to")}},
		{"bypass", `alter role ROLE bypassrls`, `alter role ROLE nobypassrls`,
			[]finding{warning("row security", "bypasses row security: it has BYPASSRLS", "relay migrate --grant-to")}},
		{"owner", `alter table ` + outboxTable + ` owner to ROLE`, `alter table ` + outboxTable + ` owner to current_user`, nil},
		{"policy with another setting", `alter policy aksara_operation_outbox_tenant_policy on ` + outboxTable + ` using (tenant_scope = current_setting('app.tenant', true))`,
			`alter policy aksara_operation_outbox_tenant_policy on ` + outboxTable + ` ` + aksaraUsing,
			[]finding{warning("policies", `policy "aksara_operation_outbox_tenant_policy" on aksara_operation_outbox isn't Aksara's: permissive using (tenant_scope = current_setting('app.tenant'`, "compare")}},
		{"further permissive policy", `create policy more on ` + outboxTable + ` for select to ROLE using (true)`, `drop policy more on ` + outboxTable,
			[]finding{warning("policies", `policy "more" on aksara_operation_outbox isn't Aksara's: permissive using true`, "compare")}},
		{"further restrictive policy", `create policy less on ` + operationsTable + ` as restrictive using (id is null)`, `drop policy less on ` + operationsTable,
			[]finding{warning("policies", `policy "less" on aksara_operations isn't Aksara's: restrictive using (id IS NULL)`, "hides rows")}},
		{"policy of others", `create policy others on ` + outboxTable + ` to pg_monitor using (true)`, `drop policy others on ` + outboxTable, nil},
		{"policy for other commands", `create policy more on ` + outboxTable + ` for insert with check (true)`, `drop policy more on ` + outboxTable, nil},
		{"policies by command", dropPolicy + `; create policy s on ` + outboxTable + ` for select ` + aksaraUsing + `; create policy u on ` + outboxTable + ` for update ` + aksaraUsing,
			`drop policy s on ` + outboxTable + `; drop policy u on ` + outboxTable + `; create policy p on ` + outboxTable + ` ` + aksaraUsing, nil},
		{"policy for select alone", dropPolicy + `; create policy s on ` + outboxTable + ` for select ` + aksaraUsing, `drop policy s on ` + outboxTable + `; create policy p on ` + outboxTable + ` ` + aksaraUsing,
			[]finding{fault("policies", "lock and update rows of aksara_operation_outbox", "a policy for select alone is not enough")}},
		{"no policy", dropPolicy, `create policy p on ` + outboxTable + ` ` + aksaraUsing,
			[]finding{fault("policies", "see rows of aksara_operation_outbox", "create policy")}},
	}
	for _, table := range []string{outboxTable, operationsTable} {
		name := strings.TrimPrefix(table, "public.")
		all = append(all,
			breakage{"off on " + name, `alter table ` + table + ` disable row level security`, `alter table ` + table + ` enable row level security`,
				[]finding{warning("row security", "row security is off on "+name, "enable row level security")}},
			breakage{"not forced on " + name, `alter table ` + table + ` no force row level security`, `alter table ` + table + ` force row level security`,
				[]finding{warning("row security", "row security is not forced on "+name, "force row level security")}})
	}
	return all
}

func indexBreakages() []breakage {
	const pending = `create index idx_aksara_operation_outbox_pending on ` + outboxTable + ` (tenant_scope, next_attempt_at, id) where exported_at is null`
	return []breakage{
		{"no index", withoutIndex, ``,
			[]finding{warning("index", "index relay_outbox_operation is missing", "relay migrate")}},
		{"invalid index", `update pg_index set indisvalid = false where indexrelid = 'public.relay_outbox_operation'::regclass`, ``,
			[]finding{warning("index", "relay_outbox_operation is invalid", "relay migrate again")}},
		{"another index", withoutIndex + `; create index relay_outbox_operation on ` + outboxTable + ` (operation_id)`, ``,
			[]finding{warning("index", "there with another definition", "relay migrate")}},
		{"name taken", withoutIndex + `; create table public.relay_outbox_operation ()`, `drop table public.relay_outbox_operation`,
			[]finding{warning("index", "its name taken", "rename")}},
		{"no pending index", `drop index public.idx_aksara_operation_outbox_pending`, pending,
			[]finding{warning("pending index", "missing or invalid", "create index concurrently idx_aksara_operation_outbox_pending")}},
		{"pending index of another name", `alter index public.idx_aksara_operation_outbox_pending rename to other`, ``, nil},
	}
}
