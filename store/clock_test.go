package store_test

import (
	"testing"
	"testing/synctest"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/relay"
	"outboxrelay/store"
)

// The process's clock is decades behind the database's, or ahead of it: leases and due times are the database's all the
// same, to the second or so. (Virtual time begins in 2000 and stands still while something waits for the network.)
func TestProcessClockDoesNotCount(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"behind": 0, "ahead": 100 * 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, f *fixture) {
				scope := tenant(t, "acme")
				f.fill(t, scope, 2, 1)
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(ahead)
					claimAndSettle(t, f.url, scope)
				})
				f.checkClock(t, "the lease", `select extract(epoch from claim_expires_at - clock_timestamp()) / 60
					from aksara_operation_outbox where claimed_by is not null`)
				f.checkClock(t, "the retry", `select extract(epoch from next_attempt_at - clock_timestamp()) / 60
					from aksara_operation_outbox where last_error is not null`)
			})
		})
	}
}

// claimAndSettle has one row fail with a retry in ten minutes, and claims another for ten minutes.
func claimAndSettle(t *testing.T, address string, scope envelope.Scope) {
	t.Helper()
	s, err := store.Open(store.Config{URL: address, Schema: "public"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	one := request(scope)
	one.Rows, one.Lease = 1, 10*time.Minute
	claim, err := s.Claim(t.Context(), one)
	if err != nil || len(claim.Rows) != 1 {
		t.Fatalf("claimed %d rows, %v", len(claim.Rows), err)
	}
	if left := time.Until(claim.Expires); left <= 0 || left > one.Lease {
		t.Errorf("the process takes the lease to end in %s, want %s", left, one.Lease)
	}
	if _, err := s.Settle(t.Context(), claim, onAll(claim, relay.Verdict{Wait: 10 * time.Minute, Error: "broken"})); err != nil {
		t.Fatal(err)
	}
	one.Token = request(scope).Token
	if claim, err = s.Claim(t.Context(), one); err != nil || len(claim.Rows) != 1 {
		t.Fatalf("claimed %d rows, %v", len(claim.Rows), err)
	}
}

// checkClock fails unless ten minutes lie before an instant, less what the test took.
func (f *fixture) checkClock(t *testing.T, what, sql string) {
	t.Helper()
	if got := value[float64](t, f, sql); got < 8 || got > 10 {
		t.Errorf("%s ends in %.2f minutes by the database's clock, want 10", what, got)
	}
}
