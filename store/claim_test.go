package store_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/internal/sample"
	"outboxrelay/relay"
)

// Of three operations the middle one is made unfit; the others must be claimed all the
// same.
func TestClaimTakesOnlyWhatIsFree(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, f *fixture) {
		for name, unfit := range map[string]string{
			"not due":         `next_attempt_at = clock_timestamp() + interval '1 minute'`,
			"parked":          `next_attempt_at = 'infinity'`,
			"leased":          `claimed_by = 'other', claim_expires_at = clock_timestamp() + interval '1 minute'`,
			"leased for ever": `claimed_by = 'other', claim_expires_at = 'infinity'`,
			"lease unnamed":   `claim_expires_at = clock_timestamp() + interval '1 minute'`,
			"exported":        `exported_at = clock_timestamp()`,
			"exported, dirty": `exported_at = clock_timestamp(), claimed_by = 'other', claim_expires_at = clock_timestamp() - interval '1 minute'`,
		} {
			t.Run(name, func(t *testing.T) {
				scope := tenant(t, name)
				rows := f.fill(t, scope, 3, 1)
				f.exec(t, "update aksara_operation_outbox set "+unfit+" where id = $1", rows[1][0])
				want := []int64{rows[0][0], rows[2][0]}
				if got := ids(f.claim(t, scope)); !slices.Equal(got, want) {
					t.Errorf("claimed %d, want %d", got, want)
				}
			})
		}
	})
}

// What is due at this very moment is free, whatever else was written about it.
func TestClaimTakesAllThatIsFree(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for name, fit := range map[string]string{
			"due for ever":        `next_attempt_at = '-infinity'`,
			"claimed, no lease":   `claimed_by = 'other'`,
			"failed before":       `last_error = 'broken', export_attempts = 7`,
			"attempts at the end": `export_attempts = 2147483647`,
			"created at infinity": `created_at = 'infinity'`,
			"no topic":            `topic = ''`,
		} {
			t.Run(name, func(t *testing.T) {
				scope := tenant(t, name)
				rows := f.fill(t, scope, 1, 2)
				f.exec(t, "update aksara_operation_outbox set "+fit+" where id = $1", rows[0][0])
				if got := ids(f.claim(t, scope)); !slices.Equal(got, rows[0]) {
					t.Errorf("claimed %d, want %d", got, rows[0])
				}
			})
		}
	})
}

func TestClaimTakesOneScopeAndNamespace(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, f *fixture) {
		scopes := []envelope.Scope{envelope.NonTenant()}
		for _, id := range []string{"acme", "Acme", "acme ", " acme", "acmé", "acme%", "a_me", "__AKSARA_GLOBAL__", "'; --", `"acme"`, "\\", "NULL"} {
			scopes = append(scopes, tenant(t, id))
		}
		namespaces := []string{namespace, "Orders", "orders ", "order", "%", "NULL"}
		type place struct {
			scope     envelope.Scope
			namespace string
		}
		want := map[place][]int64{}
		for _, scope := range scopes {
			for _, name := range namespaces {
				want[place{scope, name}] = slices.Concat(f.fillAs(t, sample.Application{Namespace: name}, scope, 1, 2)...)
			}
		}
		for at, want := range want {
			req := request(at.scope)
			req.Namespace = at.namespace
			claim := f.claimWith(t, req)
			if got := ids(claim); !slices.Equal(got, want) {
				t.Errorf("%s of %q: claimed %d, want %d", at.scope, at.namespace, got, want)
			}
			if claim.Scope != at.scope || claim.Token != req.Token {
				t.Errorf("claim is of %s with token %q", claim.Scope, claim.Token)
			}
		}
	})
}

// Claiming writes three columns, moving a row behind another one; nothing else changes
// anywhere.
func TestClaimWritesItsColumnsOnly(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		rows := f.fill(t, scope, 3, 2)
		f.fill(t, tenant(t, "other"), 1, 1)
		f.exec(t, `update aksara_operation_outbox set last_error = 'kept', export_attempts = 3 where id = $1`, rows[0][0])
		f.exec(t, `update aksara_operation_outbox set next_attempt_at = 'infinity' where id = $1`, rows[1][0])

		before := f.snapshot(t)
		claim := f.claim(t, scope)
		got := before.changed(f.snapshot(t))

		if claim.Pushed != 1 {
			t.Errorf("pushed %d rows, want 1", claim.Pushed)
		}
		for _, id := range ids(claim) {
			if want := []string{"claim_expires_at", "claimed_by", "export_attempts"}; !slices.Equal(got[outboxKey(id)], want) {
				t.Errorf("claimed row %d: changed %s, want %s", id, got[outboxKey(id)], want)
			}
		}
		if want := []string{"next_attempt_at"}; !slices.Equal(got[outboxKey(rows[1][1])], want) {
			t.Errorf("row behind a parked one: changed %s, want %s", got[outboxKey(rows[1][1])], want)
		}
		if len(claim.Rows) != 4 || len(got) != 5 {
			t.Errorf("claimed %d rows and changed %d, want 4 and 5: %v", len(claim.Rows), len(got), got)
		}
	})
}

func TestClaimTellsWhatItsRowsHold(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		rows := slices.Concat(f.fill(t, scope, 2, 2)...)
		f.exec(t, `update aksara_operation_outbox set topic = 'other', export_attempts = 2147483647, created_at = '2026-02-03 04:05:06.789012+00',
			payload = '{"text": "\u00fc \"quoted\" \\ \ud83d\ude00", "n": 9223372036854775807, "f": 1.50}' where id = $1`, rows[1])
		req := request(scope)
		start, before := f.now(t), time.Now()
		claim := f.claimWith(t, req)

		if !slices.Equal(ids(claim), slices.Sorted(slices.Values(rows))) {
			t.Fatalf("claimed %d, want %d in ascending order", ids(claim), rows)
		}
		for _, row := range claim.Rows {
			checkRow(t, f, row, req, start)
		}
		if claim.Expires.Before(before.Add(req.Lease)) || claim.Expires.After(time.Now().Add(req.Lease)) {
			t.Errorf("lease ends at %s, want %s after the call", claim.Expires, req.Lease)
		}
		odd := claim.Rows[slices.IndexFunc(claim.Rows, func(r relay.Row) bool { return r.ID == rows[1] })]
		if odd.Attempts != math.MaxInt32 || odd.Type != "other" {
			t.Errorf("attempts %d, type %q", odd.Attempts, odd.Type)
		}
		if want := time.Date(2026, 2, 3, 4, 5, 6, 789_012_000, time.UTC); !odd.CreatedAt.Equal(want) {
			t.Errorf("created at %s, want %s", odd.CreatedAt, want)
		}
	})
}

// checkRow compares a claimed row with the table.
func checkRow(t *testing.T, f *fixture, row relay.Row, req relay.Request, start time.Time) {
	t.Helper()
	const same = `select (operation_id, topic, payload::text, octet_length(payload::text), export_attempts)
		  is not distinct from ($2::uuid, $3::text, $4::text, $5::int, $6::int)
		and claimed_by = $7
		and claim_expires_at - $8 * interval '1 second' between $9 and clock_timestamp()
		from aksara_operation_outbox where id = $1`
	ok := value[bool](t, f, same, row.ID, row.OperationID, row.Type, string(row.Payload), row.Bytes, row.Attempts,
		req.Token, req.Lease.Seconds(), start)
	if !ok {
		t.Errorf("row %d: %+v is not what the table holds", row.ID, row)
	}
	if row.Attempts != math.MaxInt32 && (row.Attempts != 1 || row.Expired != "") {
		t.Errorf("row %d: attempts %d, expired %q, want 1 and none", row.ID, row.Attempts, row.Expired)
	}
}

func TestClaimWithNothingToTake(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		for range 2 {
			claim := f.claim(t, scope)
			if len(claim.Rows) != 0 || claim.Seen != 0 || claim.Pushed != 0 || claim.More {
				t.Errorf("claimed from an empty scope: %+v", claim)
			}
			f.fill(t, scope, 1, 1)
			f.claim(t, scope)
		}
	})
}

// A token is at most 255 characters long, whatever they are; one that the column
// refuses must not take rows.
func TestClaimToken(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		f.fill(t, scope, 1, 1)
		req := request(scope)
		req.Token = strings.Repeat("ü", 256)
		if _, err := f.Claim(t.Context(), req); err == nil {
			t.Error("a token of 256 characters was taken")
		}
		req.Token = strings.Repeat("ü", 255)
		claim := f.claimWith(t, req)
		if len(claim.Rows) != 1 {
			t.Fatalf("claimed %d rows, want 1", len(claim.Rows))
		}
		if got := f.settle(t, claim, relay.Verdict{Exported: true}); got[0].Status != relay.Written {
			t.Errorf("status %d, want written", got[0].Status)
		}
	})
}
