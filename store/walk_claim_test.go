package store_test

import (
	"slices"
	"testing"

	"outboxrelay/envelope"
	"outboxrelay/internal/sample"
	"outboxrelay/relay"
)

// backdate gives a scope's rows due times in the order of their ids, some time ago.
func (f *fixture) backdate(t *testing.T, scope envelope.Scope) {
	t.Helper()
	f.exec(t, `update aksara_operation_outbox set next_attempt_at = '2026-01-01'::timestamptz + id * interval '1 second'
		where tenant_scope = $1`, scope.Stored())
}

// A row that becomes due before the place that a drain has reached is found all the
// same, long before the drain's end.
func TestEarlierRowsAreFoundDuringADrain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		const most = 17 // the claims between two walks over everything, and that one
		scope := tenant(t, "acme")
		f.fill(t, scope, 400, 1)
		f.backdate(t, scope)
		req := request(scope)
		req.Rows = 10
		f.settle(t, f.claimWith(t, req), relay.Verdict{Exported: true})
		early := f.fill(t, scope, 1, 1)[0][0]
		f.exec(t, "update aksara_operation_outbox set next_attempt_at = '2025-01-01' where id = $1", early)
		for i := 1; ; i++ {
			claim := f.claimWith(t, req)
			if len(claim.Rows) != 10 {
				t.Fatalf("claim %d of a long drain has %d rows, want 10", i, len(claim.Rows))
			}
			f.settle(t, claim, relay.Verdict{Exported: true})
			if slices.Contains(ids(claim), early) {
				break
			}
			if i == most {
				t.Fatalf("not found by %d claims", i)
			}
		}
	})
}

func TestEarlierRowsAreFoundAfterADrain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		f.fill(t, scope, 35, 1)
		f.backdate(t, scope)
		req := request(scope)
		req.Rows = 10
		f.settle(t, f.claimWith(t, req), relay.Verdict{Exported: true})
		early := f.fill(t, scope, 1, 1)[0][0]
		f.exec(t, "update aksara_operation_outbox set next_attempt_at = '2025-01-01' where id = $1", early)
		if got := f.drain(t, scope, 10); len(got) != 26 || got[25] != early {
			t.Errorf("drained %d, want 26 rows with %d as the last", got, early)
		}
	})
}

// Rows that are given back due are the next claim's, wherever the drain is.
func TestReturnedRowsAreFoundAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		f.fill(t, scope, 100, 1)
		f.backdate(t, scope)
		req := request(scope)
		req.Rows = 10
		first := f.claimWith(t, req)
		f.claimWith(t, req)
		f.settle(t, first, relay.Verdict{Wait: relay.KeepDue, Refund: true})
		if got := ids(f.claimWith(t, req)); !slices.Equal(got, ids(first)) {
			t.Errorf("claimed %d, want %d again", got, ids(first))
		}
	})
}

// Rows of an application that shares the tables and is not ours, however many, cost a
// claim no more than it looks at, and what lies behind them is reached.
func TestForeignRowsInFront(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		const foreign, looks = 3000, 200
		scope := tenant(t, "acme")
		f.fillAs(t, sample.Application{Namespace: "foreign"}, scope, foreign/3, 3)
		written := value[string](t, f, "select min(xmin::text) from aksara_operation_outbox")
		ours := slices.Concat(f.fill(t, scope, 5, 1)...)
		req := request(scope)
		req.Rows = 2
		var got []int64
		for i := 0; len(got) < len(ours); i++ {
			claim := f.claimWith(t, req)
			if claim.Seen > looks || !claim.More || i > foreign/looks+len(ours) {
				t.Fatalf("claim %d: looked at %d rows, more %t, %d claimed so far", i, claim.Seen, claim.More, got)
			}
			f.settle(t, claim, relay.Verdict{Exported: true})
			got = append(got, ids(claim)...)
		}
		if !slices.Equal(got, ours) {
			t.Errorf("claimed %d, want %d", got, ours)
		}
		if n := value[int](t, f, `select count(*) from aksara_operation_outbox o join aksara_operations op on op.id = o.operation_id
			where op.application_namespace = 'foreign' and o.xmax = '0' and o.xmin::text = $1`, written); n != foreign {
			t.Errorf("%d of %d rows of the other application were left alone, locks included", n, foreign)
		}
	})
}

// Rows that stood behind others in flight when a claim came past are found as soon as
// those are done, however many rows of others lie in front.
func TestRowsPassedOverAreFoundAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		f.fillAs(t, sample.Application{Namespace: "foreign"}, scope, 1000, 3)
		want := len(slices.Concat(f.fill(t, scope, 300, 3)...))
		req := request(scope)
		req.Rows = 100
		var held []relay.Claim
		got, without := 0, 0
		for got < want {
			claim := f.claimWith(t, req)
			got += len(claim.Rows)
			if len(claim.Rows) > 0 {
				held, without = append(held, claim), 0
				continue
			}
			if without++; without > 3000/200+900/200+3 {
				t.Fatalf("%d of %d rows are claimed, and %d claims found none", got, want, without)
			}
			for _, done := range held {
				f.settle(t, done, relay.Verdict{Exported: true})
			}
			held = nil
		}
	})
}
