package store

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"
)

// rowSecurity looks whether a transaction of one scope is kept from another's rows.
// The statements name their scope themselves, so anything less only warns.
func (i *inspection) rowSecurity(context.Context) error {
	const check = "row security"
	said := len(i.findings)
	for _, n := range i.needs() {
		switch t := i.tables[n.table]; {
		case !t.Secured:
			i.warn(check, "row security is off on "+t.Name+": only the relay's statements keep scopes apart",
				"alter table "+quote(i.schema, t.Name)+" enable row level security, force row level security")
		case !t.Forced:
			i.warn(check, "row security is not forced on "+t.Name+": it does not hold for the table's owner",
				"alter table "+quote(i.schema, t.Name)+" force row level security")
		}
	}
	if why := i.role.bypasses(); why != "" {
		i.warn(check, fmt.Sprintf("role %q bypasses row security: it %s", i.role.name, why),
			"use a role that is neither a superuser nor BYPASSRLS; relay migrate --grant-to gives it what it needs")
	}
	i.okUnlessSaid(said, check, fmt.Sprintf("row security holds for role %q", i.role.name))
	return nil
}

// bypasses says why row security does not hold for a role, or nothing.
func (r role) bypasses() string {
	switch {
	case r.superuser:
		return "is a superuser"
	case r.bypass:
		return "has BYPASSRLS"
	}
	return ""
}

// aksaraPolicy is the condition of Aksara's policies, as every server since PostgreSQL
// 13 prints it, without blanks and outer brackets.
const aksaraPolicy = `tenant_scope=current_setting('aksara.current_tenant_id'::text,true)`

// policy is one that applies to the role.
type policy struct {
	Table, Name string
	Permissive  bool
	Command     string // r: select, w: update, *: all
	Using       *string
	Check       *string // of the new row; nil: as Using
}

// policies looks whether the policies that apply to the role let it see and lock the
// rows of its scope, and whether they are Aksara's.
func (i *inspection) policies(ctx context.Context) error {
	all, err := collect(ctx, i, pgx.RowToStructByPos[policy], `
		select c.relname::text, p.polname::text, p.polpermissive, p.polcmd::text,
		       pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)
		from pg_policy p join pg_class c on c.oid = p.polrelid join pg_namespace n on n.oid = c.relnamespace
		where n.nspname = $1 and c.relname = any($2) and p.polcmd in ('r', 'w', '*')
		  and (p.polroles = '{0}' or exists (select from unnest(p.polroles) r where r <> 0 and pg_has_role(r, 'USAGE')))
		order by 1, 2`, []string{outbox, operations, transitions})
	if err != nil {
		return err
	}
	said, holds := len(i.findings), false
	for _, n := range i.needs() {
		if i.tables[n.table].Active {
			holds = true
			i.judgePolicies(n, all)
		}
	}
	if holds {
		i.okUnlessSaid(said, "policies", "the policies that apply are Aksara's")
	}
	return nil
}

// judgePolicies judges those of one table. Locking a row takes an UPDATE policy as well.
func (i *inspection) judgePolicies(n need, all []policy) {
	const check = "policies"
	name := quote(i.schema, n.table)
	visible, lockable := false, n.update == nil
	for _, p := range all {
		if p.Table != n.table || p.Command == "w" && n.update == nil {
			continue
		}
		visible = visible || p.Permissive && p.Command != "w"
		lockable = lockable || p.Permissive && p.Command != "r"
		switch {
		case p.recognised():
		case i.store.durable && n.table == outbox && !p.Permissive:
			i.fail(check, fmt.Sprintf("policy %s on %s isn't Aksara's: %s", quote(p.Name), n.table, p),
				"drop it, or set RELAY_DELIVERY=at-least-once: exactly-once can't tell a row that it hides from one that was deleted")
		default:
			i.warn(check, fmt.Sprintf("policy %s on %s isn't Aksara's: %s", quote(p.Name), n.table, p),
				"compare it with Aksara's; if it hides rows of a configured scope, they are never exported")
		}
	}
	create := "as the owner put it right, such as: create policy " + quote(n.table+"_tenant_policy") + " on " + name +
		" using (tenant_scope = current_setting('aksara.current_tenant_id', true))"
	switch {
	case !visible:
		i.fail(check, fmt.Sprintf("no policy lets role %q see rows of %s", i.role.name, n.table), create)
	case !lockable:
		i.fail(check, fmt.Sprintf("no policy lets role %q lock and update rows of %s: it sees them, but every claim is empty", i.role.name, n.table),
			create+"; a policy for select alone is not enough")
	}
}

func (p policy) recognised() bool {
	return p.Permissive && bare(p.Using) == aksaraPolicy && (p.Check == nil || bare(p.Check) == aksaraPolicy)
}

// String is the policy's own words.
func (p policy) String() string {
	kind := "permissive"
	if !p.Permissive {
		kind = "restrictive"
	}
	text := kind
	if p.Using != nil {
		text += " using " + *p.Using
	}
	if p.Check != nil {
		text += " with check " + *p.Check
	}
	return text
}

// bare is an expression without blanks and the brackets around it.
func bare(expression *string) string {
	if expression == nil {
		return ""
	}
	text := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, *expression)
	return strings.TrimSuffix(strings.TrimPrefix(text, "("), ")")
}
