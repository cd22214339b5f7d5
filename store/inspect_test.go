package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"outboxrelay/envelope"
	"outboxrelay/internal/pgtest"
	"outboxrelay/migrations"
	"outboxrelay/relay"
	"outboxrelay/store"
)

// inspected is a database that a relay works on with the smallest privileges.
type inspected struct {
	*pgtest.DB
	url, role string // role is quoted
}

func newInspected(t *testing.T) inspected {
	t.Helper()
	db := pgtest.Database(t, pgtest.Setup{Name: "inspected", Apply: func(ctx context.Context, url string) error {
		return migrations.StandaloneSchema(ctx, url, "public")
	}})
	url := db.Role(t, "relay", "")
	in := inspected{db, url, pgtest.User(t, url)}
	in.grant(t)
	return in
}

// grant gives the role what it lacks, and makes tables that are missing.
func (in inspected) grant(t *testing.T) {
	t.Helper()
	options := migrations.Options{Standalone: true, GrantTo: strings.Trim(in.role, `"`)}
	if err := migrations.Run(t.Context(), in.Conn(t), options); err != nil {
		t.Fatal(err)
	}
}

// change runs statements that name the role as ROLE.
func (in inspected) change(t *testing.T, statements string) {
	t.Helper()
	in.Exec(t, strings.ReplaceAll(statements, "ROLE", in.role))
}

func (in inspected) open(t *testing.T, change func(*store.Config)) *store.Store {
	t.Helper()
	config := store.Config{URL: in.url, Schema: "public"}
	if change != nil {
		change(&config)
	}
	s, err := store.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// inspect gives the findings of a new store that aren't ok.
func (in inspected) inspect(t *testing.T, change func(*store.Config)) []relay.Finding {
	t.Helper()
	return notOK(in.open(t, change).Inspect(t.Context(), "orders", []envelope.Scope{envelope.NonTenant()}))
}

func notOK(all []relay.Finding) (bad []relay.Finding) {
	for _, f := range all {
		if f.Level != relay.OK {
			bad = append(bad, f)
		}
	}
	return bad
}

// finding is what is expected of one: parts of its texts.
type finding struct {
	level    relay.Level
	check    string
	seen, do string
}

func warning(check, seen, do string) finding {
	return finding{level: relay.Warn, check: check, seen: seen, do: do}
}

func fault(check, seen, do string) finding {
	return finding{level: relay.Fail, check: check, seen: seen, do: do}
}

func wantFindings(t *testing.T, got []relay.Finding, want ...finding) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("found %s\nwant %d findings: %+v", describe(got), len(want), want)
	}
	for i, w := range want {
		g := got[i]
		if g.Level != w.level || g.Check != w.check || !strings.Contains(g.Seen, w.seen) || !strings.Contains(g.Do, w.do) {
			t.Errorf("found %s\nwant %s %s: ...%s... -> ...%s...", describe(got[i:i+1]), w.level, w.check, w.seen, w.do)
		}
	}
}

func describe(all []relay.Finding) string {
	if len(all) == 0 {
		return "nothing"
	}
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "\n  %s %s: %s -> %s", f.Level, f.Check, f.Seen, f.Do)
	}
	return b.String()
}

// breakage is one thing that is wrong with a database, and how it is mended.
type breakage struct {
	name         string
	broke, mends string
	want         []finding
}

func TestInspectFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	cases := schemaBreakages()
	cases = append(cases, privilegeBreakages()...)
	cases = append(cases, rowSecurityBreakages()...)
	cases = append(cases, indexBreakages()...)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := newInspected(t)
			wantFindings(t, in.inspect(t, nil))
			in.change(t, c.broke)
			for i := range c.want {
				c.want[i].do = strings.ReplaceAll(c.want[i].do, "ROLE", in.role)
			}
			wantFindings(t, in.inspect(t, nil), c.want...)
			if c.mends != "" {
				in.change(t, c.mends)
			}
			in.grant(t)
			wantFindings(t, in.inspect(t, nil))
		})
	}
}

func TestInspectChangesNothing(t *testing.T) {
	t.Parallel()
	in := newInspected(t)
	if err := app.Fill(t.Context(), in.Pool(t), envelope.NonTenant(), 10, 2); err != nil {
		t.Fatal(err)
	}
	s := in.open(t, func(c *store.Config) { c.Connections = 1 })
	if bad := notOK(s.Inspect(t.Context(), "orders", []envelope.Scope{envelope.NonTenant()})); bad != nil {
		t.Fatalf("found %s", describe(bad))
	}
	if _, err := s.Status(t.Context(), "orders", envelope.NonTenant()); err != nil {
		t.Fatal(err)
	}
	var claimed int
	if err := in.Conn(t).QueryRow(t.Context(), `select count(*) from `+outboxTable+` where claimed_by is not null`).Scan(&claimed); err != nil {
		t.Fatal(err)
	}
	if claimed != 0 {
		t.Errorf("inspecting claimed %d rows", claimed)
	}
}

// In exactly-once mode commits must outlive a crash. The setting is followed without a new connection.
func TestForgetfulServerIsRefused(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	in := inspected{DB: &pgtest.DB{Name: "postgres", URL: server.URL("postgres")}, url: server.URL("postgres")}
	if err := migrations.StandaloneSchema(t.Context(), in.URL, "public"); err != nil {
		t.Fatal(err)
	}
	durable := func(c *store.Config) { c.Durable = true }
	open := in.open(t, durable)
	of := func(change func(*store.Config)) (found []relay.Finding) {
		for _, f := range in.inspect(t, change) {
			if f.Check == "durability" {
				found = append(found, f)
			}
		}
		return found
	}
	fsync := func(value string) {
		in.Exec(t, "alter system set fsync = "+value)
		in.Exec(t, "select pg_reload_conf()")
		eventually(t, "the setting", func() error {
			err := open.Durable(t.Context())
			if (value == "off") != errors.Is(err, relay.ErrForgetful) {
				return fmt.Errorf("fsync=%s: %v", value, err)
			}
			return nil
		})
	}
	fsync("on") // proves nothing but that it is durable at first
	wantFindings(t, of(durable))
	fsync("off")
	wantFindings(t, of(durable), fault("durability", "fsync=off", "set fsync=on"))
	wantFindings(t, of(nil), warning("durability", "fsync=off", "set fsync=on"))
	fsync("on")
	wantFindings(t, of(durable))
	if err := open.Durable(t.Context()); err != nil {
		t.Error(err)
	}
}

// A policy that may hide rows that were seen before makes exactly-once send them again: it can't tell them from deleted ones.
func TestRestrictivePolicyIsRefusedForExactlyOnce(t *testing.T) {
	t.Parallel()
	in := newInspected(t)
	in.change(t, `create policy less on aksara_operation_outbox as restrictive using (id > 0)`)
	wantFindings(t, in.inspect(t, nil), warning("policies", `policy "less"`, "compare"))
	wantFindings(t, in.inspect(t, func(c *store.Config) { c.Durable = true }), fault("policies", `policy "less"`, "RELAY_DELIVERY=at-least-once"))
}
