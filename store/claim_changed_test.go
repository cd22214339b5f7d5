package store_test

import (
	"errors"
	"slices"
	"testing"

	"outboxrelay/internal/waittest"
	"outboxrelay/relay"
	"outboxrelay/store"
)

// Somebody changes a row after a claim has begun to look and before it has locked it. The claim leaves that row alone, and
// what stands behind it in its operation. The next one takes what it may.
func TestClaimLeavesAloneWhatChangesMeanwhile(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		rows := f.fill(t, scope, 3, 3)
		f.exec(t, `create function look() returns boolean language plpgsql as 'begin perform pg_advisory_xact_lock_shared(1); return true; end'`)
		f.exec(t, `create policy slow on aksara_operation_outbox as restrictive using (look())`)
		s, err := store.OpenWith(store.Config{URL: f.url, Schema: "public"}, patience, patience)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		for _, c := range []struct {
			name, change string
			changed      int64
			first, next  []int64
		}{
			{"the second of three", "last_error = 'changed'", rows[0][1], slices.Concat(rows[0][:1], rows[1], rows[2]), nil},
			{"a first one", "export_attempts = 7", rows[1][0], slices.Concat(rows[0], rows[2]), rows[1]},
			{"exported by somebody", "exported_at = clock_timestamp()", rows[2][0], slices.Concat(rows[0], rows[1]), rows[2][1:]},
		} {
			t.Run(c.name, func(t *testing.T) {
				gate := f.session(t)
				if _, err := gate.Exec(t.Context(), "select pg_advisory_xact_lock(1)"); err != nil {
					t.Fatal(err)
				}
				claims := make(chan relay.Claim)
				go func() {
					claim, err := s.Claim(t.Context(), request(scope))
					if err != nil {
						t.Error(err)
					}
					claims <- claim
				}()
				waittest.Until(t, patience, "the claim to look", func() error {
					if value[int](t, f, `select count(*) from pg_locks
						where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())`) == 0 {
						return errors.New("it does not wait")
					}
					return nil
				})
				f.exec(t, "update aksara_operation_outbox set "+c.change+" where id = $1", c.changed)
				if err := gate.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}
				claim := <-claims
				if got := ids(claim); !slices.Equal(got, slices.Sorted(slices.Values(c.first))) {
					t.Errorf("claimed %d, want %d", got, c.first)
				}
				next, err := s.Claim(t.Context(), request(scope))
				if err != nil || !slices.Equal(ids(next), c.next) {
					t.Errorf("then claimed %d, want %d: %v", ids(next), c.next, err)
				}
				f.exec(t, "update aksara_operation_outbox set claimed_by = null, claim_expires_at = null, next_attempt_at = created_at")
			})
		}
	})
}
