package store_test

import (
	"fmt"
	"testing"

	"outboxrelay/relay"
)

// Several relays drain a scope: while one of them claims, another does not look at the same rows, which only one of them can
// have. If the one makes no progress, all that it does not hold is claimed nevertheless, and what it held when it is gone.
func TestClaimsDoNotLookAtTheSameRows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		const size = 200 // rows of a claim, which looks at as many
		scope := tenant(t, "acme")
		f.fill(t, scope, 3*size+50, 1)
		f.backdate(t, scope)
		req := request(scope)
		req.Rows = size
		took := map[int64]bool{}
		claim := func() relay.Claim {
			t.Helper()
			c := f.claimWith(t, req)
			for _, row := range c.Rows {
				took[row.ID] = true
			}
			return c
		}
		claim() // now there is much

		others := request(scope)
		others.Rows, others.Token = size, "another relay"
		another := f.frame(t, scope)
		gate, number := f.GateText(others)
		if _, err := another.Exec(t.Context(), gate, number); err != nil {
			t.Fatal(err)
		}
		if tag, err := another.Exec(t.Context(), f.ClaimText(others, f.indexed), claimArguments(others)...); err != nil || tag.RowsAffected() != size+1 {
			t.Fatalf("%v, %v, want %d rows claimed and one that tells of them", tag, err, size)
		}
		if c := claim(); c.Seen > 0 || c.More {
			t.Errorf("the claim looked at %d rows where another one looks, and says more %t", c.Seen, c.More)
		}
		one := request(scope)
		one.Rows = 1
		if c := f.claimWith(t, one); c.Seen == 0 {
			t.Error("a claim of one row was told that there is none")
		}
		elsewhere := tenant(t, "globex")
		f.fill(t, elsewhere, 1, 1)
		if c := f.claim(t, elsewhere); len(c.Rows) != 1 {
			t.Errorf("of another tenant %d rows were claimed, want 1", len(c.Rows))
		}

		all := func(want int) {
			t.Helper()
			eventually(t, fmt.Sprintf("%d rows to be claimed", want), func() error {
				if claim(); len(took) != want {
					return fmt.Errorf("%d are", len(took))
				}
				return nil
			})
		}
		all(2*size + 50)
		if err := another.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		all(3*size + 50)
	})
}
