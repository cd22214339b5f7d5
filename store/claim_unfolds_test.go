package store_test

import (
	"testing"
	"time"

	"outboxrelay/relay"
	"outboxrelay/store"
)

// Payloads that take 1 KB in the table unfold to very long texts, all of which take longer than a claim may. A claim of one row
// unfolds one.
func TestClaimUnfoldsNoMoreThanItTakes(t *testing.T) {
	f := newFixture(t, variants()[0])
	acme := tenant(t, "acme")
	f.fill(t, acme, 60, 1)
	f.exec(t, `update aksara_operation_outbox set payload = payload || jsonb_build_object('more', (select jsonb_agg('1e131000'::jsonb) from generate_series(1, 300)))`)
	db := f.openWith(t, store.Config{}, 3*time.Second, 2*time.Second)
	claim, err := db.Claim(t.Context(), relay.Request{Namespace: namespace, Scope: acme, Token: "worker/0123456789abcdef", Lease: time.Minute, Rows: 1, Bytes: 4 << 20})
	if err != nil || len(claim.Rows) != 1 {
		t.Errorf("claimed %d rows (%v), want 1", len(claim.Rows), err)
	}
}
