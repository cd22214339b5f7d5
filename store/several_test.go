package store_test

import (
	"strings"
	"testing"

	"outboxrelay/relay"
)

// severalOf is requests of some tenants under one token.
func severalOf(t testing.TB, ids ...string) (reqs []relay.Request) {
	t.Helper()
	for _, id := range ids {
		req := request(tenant(t, id))
		req.Exact, req.Token = true, "orders-0-0#0123456789abcdef"
		reqs = append(reqs, req)
	}
	return reqs
}

// The database refuses to touch one tenant's rows: nothing of the others is claimed or marked by halves, and each by itself is.
func TestSeveralScopesAreOneTransaction(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for _, id := range []string{"acme", "globex", "initech"} {
			f.fill(t, tenant(t, id), 1, 2)
		}
		f.exec(t, `create function refuse() returns trigger language plpgsql as $$ begin raise 'not this one'; end $$`)
		forbid := func() {
			f.exec(t, `create trigger refuse before update on aksara_operation_outbox for each row when (old.tenant_scope = 'globex') execute function refuse()`)
		}
		allow := func() { f.exec(t, `drop trigger refuse on aksara_operation_outbox`) }
		changed := func(what string) (n int) {
			t.Helper()
			if err := f.admin.QueryRow(t.Context(), `select count(*) from aksara_operation_outbox where `+what).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		reqs := severalOf(t, "acme", "globex", "initech")

		forbid()
		if _, err := f.ClaimAll(t.Context(), reqs); relay.ClassOf(err) != relay.RowFault {
			t.Errorf("claims, of which one is refused: %v, want an error that says so", err)
		}
		if n := changed("claimed_by is not null"); n != 0 {
			t.Errorf("%d rows are claimed, want none", n)
		}
		if claim, err := f.Claim(t.Context(), reqs[0]); err != nil || len(claim.Rows) != 2 {
			t.Errorf("a claim by itself holds %d rows (%v), want 2", len(claim.Rows), err)
		}
		f.exec(t, "update aksara_operation_outbox set claimed_by = null, claim_expires_at = null where tenant_scope <> 'globex'")

		allow()
		claims, err := f.ClaimAll(t.Context(), reqs)
		if err != nil {
			t.Fatal(err)
		}
		var all []relay.Settlement
		for _, claim := range claims {
			s := relay.Settlement{Claim: claim}
			for i := range claim.Rows {
				s.Verdicts = append(s.Verdicts, relay.Verdict{Row: &claim.Rows[i], Exported: true})
			}
			all = append(all, s)
		}
		forbid()
		if _, err := f.SettleAll(t.Context(), all); relay.ClassOf(err) != relay.RowFault {
			t.Errorf("marks, of which some are refused: %v, want an error that says so", err)
		}
		if n := changed("exported_at is not null"); n != 0 {
			t.Errorf("%d rows are marked, want none", n)
		}
		allow()
		if _, err := f.SettleAll(t.Context(), all); err != nil || changed("exported_at is not null and claimed_by is null") != 6 {
			t.Errorf("after that %d rows are marked (%v), want 6", changed("exported_at is not null and claimed_by is null"), err)
		}
	})
}

// Each claim takes one row however large. So that several don't add up, such payloads are read by claims of one scope alone.
func TestLargePayloadsAreReadAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, variants()[0])
	for _, id := range []string{"acme", "globex"} {
		f.fill(t, tenant(t, id), 1, 1)
	}
	f.exec(t, `update aksara_operation_outbox set payload = payload || '{"more": 1e100000}' where tenant_scope = 'globex'`)
	claims, err := f.ClaimAll(t.Context(), severalOf(t, "acme", "globex"))
	if err != nil {
		t.Fatal(err)
	}
	if row := claims[0].Rows[0]; row.Payload == nil || row.Err != nil {
		t.Errorf("the small payload was not read: %v", row.Err)
	}
	if row := claims[1].Rows[0]; row.Payload != nil || relay.ClassOf(row.Err) != relay.NotAttempted || !claims[1].More {
		t.Errorf("the large payload: %d bytes read, %v, more %t; want it left for another claim", len(row.Payload), row.Err, claims[1].More)
	}
	f.settle(t, claims[1], relay.Verdict{Wait: relay.KeepDue, Refund: true})
	if alone := f.claimWith(t, severalOf(t, "globex")[0]); len(alone.Rows) != 1 || len(alone.Rows[0].Payload) < 100_000 {
		t.Errorf("the claim by itself did not read it: %+v", alone.Rows)
	}
}

// A trigger discards marks without an error. In exactly-once mode the row would be sent again, so that is one. Rows that are no
// longer the claim's, or are gone, are not.
func TestDiscardedMarksAreAnError(t *testing.T) {
	t.Parallel()
	f := newFixture(t, variants()[0])
	f.fill(t, tenant(t, "acme"), 3, 1)
	claim := f.claimWith(t, severalOf(t, "acme")[0])
	settle := func() error {
		t.Helper()
		_, err := f.Settle(t.Context(), claim, onAll(claim, relay.Verdict{Exported: true}))
		return err
	}
	f.exec(t, `create function swallow() returns trigger language plpgsql as $$ begin return null; end $$;
		create trigger swallow before update on aksara_operation_outbox for each row execute function swallow()`)
	if err := settle(); relay.ClassOf(err) != relay.RowFault || !strings.Contains(err.Error(), "3 rows were marked exported, and are not") {
		t.Errorf("marks that were discarded: %v, want an error that says so", err)
	}
	f.exec(t, `drop trigger swallow on aksara_operation_outbox`)
	f.exec(t, `delete from aksara_operation_outbox where id = $1`, claim.Rows[0].ID)
	f.exec(t, `update aksara_operation_outbox set claimed_by = 'another' where id = $1`, claim.Rows[1].ID)
	for range 2 { // by whoever was first
		if err := settle(); err != nil {
			t.Error(err)
		}
	}
}
