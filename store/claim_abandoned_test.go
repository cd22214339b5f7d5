package store_test

import (
	"fmt"
	"slices"
	"testing"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

// Many rows that a claim which ran out has left behind hold up nobody else's, and are
// claimed on their own, the longest due first, with no more looked at than a claim may.
func TestAbandonedRows(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, f *fixture) {
		for _, rows := range []int{100, 200} {
			f.abandonedRows(t, tenant(t, fmt.Sprint(rows, " at a time")), rows)
		}
	})
}

func (f *fixture) abandonedRows(t *testing.T, scope envelope.Scope, rows int) {
	left := slices.Concat(f.fill(t, scope, 450, 1)...)
	f.claim(t, scope)
	f.expire(t)
	fresh := slices.Concat(f.fill(t, scope, 3, 1)...)
	if got := f.claim(t, scope); !slices.Equal(ids(got), fresh) || !got.Abandoned {
		t.Errorf("claimed %d, abandoned %t; want %d and the others told of", ids(got), got.Abandoned, fresh)
	}
	req := request(scope)
	req.Abandoned, req.Rows = true, rows
	for len(left) > 0 {
		want := left[:min(len(left), req.Rows)]
		left = left[len(want):]
		claim := f.claimWith(t, req)
		if !slices.Equal(ids(claim), want) || len(left) > 0 && !claim.Abandoned || claim.Seen > 200 {
			t.Fatalf("rows %d of %d seen, more of them %t; want %d", ids(claim), claim.Seen, claim.Abandoned, want)
		}
		f.settle(t, claim, relay.Verdict{Exported: true})
	}
	if claim := f.claimWith(t, req); len(claim.Rows) != 0 {
		t.Errorf("claimed %d where none is left", ids(claim))
	}
}

// A row that was left behind behind a parked one waits like others.
func TestAbandonedBehindAParkedRow(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		rows := f.fill(t, scope, 1, 2)[0]
		f.claim(t, scope)
		f.exec(t, `update aksara_operation_outbox set next_attempt_at = 'infinity', claimed_by = null, claim_expires_at = null
			where id = $1`, rows[0])
		f.expire(t)
		if claim := f.claim(t, scope); claim.Pushed != 1 || claim.Abandoned {
			t.Errorf("pushed %d, abandoned %t; want 1 and false", claim.Pushed, claim.Abandoned)
		}
	})
}
