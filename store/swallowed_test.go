package store_test

import (
	"testing"

	"outboxrelay/relay"
)

// Somebody's trigger lets marks come to nothing, without an error: the settlement says that they did, so that nobody counts
// the rows as exported.
func TestSwallowedMarksAreTold(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		f.fill(t, scope, 2, 1)
		f.exec(t, `create function swallow() returns trigger language plpgsql as $$ begin return null; end $$`)
		f.exec(t, `create trigger swallow before update on aksara_operation_outbox
			for each row when (new.exported_at is not null and old.id % 2 = 0) execute function swallow()`)
		claim := f.claim(t, scope)
		for i, result := range f.settle(t, claim, relay.Verdict{Exported: true}) {
			want := relay.Written
			if claim.Rows[i].ID%2 == 0 {
				want = relay.Lost
			}
			if result.Status != want {
				t.Errorf("row %d: status %d, want %d", claim.Rows[i].ID, result.Status, want)
			}
		}
		if n := value[int](t, f, "select count(*) from aksara_operation_outbox where exported_at is not null"); n != 1 {
			t.Errorf("%d rows are exported, want 1", n)
		}
	})
}
