package store_test

import (
	"fmt"
	"slices"
	"testing"

	"outboxrelay/relay"
)

func TestClaimTakesAtMostSoManyRows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		f.fill(t, scope, 5, 2) // what stands behind a claimed row is passed over
		for _, c := range []struct {
			rows, want, seen int
			more             bool
		}{{1, 1, 10, true}, {3, 3, 9, true}, {10, 2, 6, true}, {10, 0, 4, false}} {
			req := request(scope)
			req.Rows = c.rows
			claim := f.claimWith(t, req)
			if len(claim.Rows) != c.want || claim.Seen != c.seen || claim.More != c.more {
				t.Errorf("at most %d rows: claimed %d of %d seen, more %t; want %d of %d, more %t",
					c.rows, len(claim.Rows), claim.Seen, claim.More, c.want, c.seen, c.more)
			}
			if n := value[int](t, f, "select count(*) from aksara_operation_outbox where claimed_by = $1", req.Token); n != c.want {
				t.Errorf("at most %d rows: the table has %d under the claim", c.rows, n)
			}
		}
	})
}

// The sizes are those of operations in the order of their due times; the first column
// of each case says which of them a budget buys.
func TestClaimTakesAtMostSoManyBytes(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		sizes  []int
		budget int64
		want   int // so many of the first
	}{
		{"all fit", []int{100, 100, 100}, 300, 3},
		{"a byte too little", []int{100, 100, 100}, 299, 2},
		{"the first always fits", []int{200, 20, 20}, 100, 1},
		{"no budget at all", []int{100, 20}, 0, 1},
		{"a large one is not squeezed in", []int{20, 30_000, 20}, 100, 1},
		{"a large one ends it", []int{20, 20, 30_000, 20}, 100, 2},
	}
	each(t, func(t *testing.T, f *fixture) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				scope := tenant(t, c.name)
				rows := slices.Concat(f.fill(t, scope, len(c.sizes), 1)...)
				for i, size := range c.sizes {
					f.resize(t, rows[i], size)
				}
				req := request(scope)
				req.Bytes = c.budget
				claim := f.claimWith(t, req)
				if got := ids(claim); !slices.Equal(got, rows[:c.want]) {
					t.Errorf("claimed %d, want the first %d of %d", got, c.want, rows)
				}
				for i, row := range claim.Rows {
					if row.Bytes != int64(c.sizes[i]) || len(row.Payload) != c.sizes[i] {
						t.Errorf("row %d: %d bytes told, %d given, want %d", row.ID, row.Bytes, len(row.Payload), c.sizes[i])
					}
				}
				if more := c.want < len(c.sizes); claim.More != more {
					t.Errorf("more = %t, want %t", claim.More, more)
				}
			})
		}
	})
}

// resize gives a row a payload of so many bytes of text.
func (f *fixture) resize(t testing.TB, id int64, bytes int) {
	t.Helper()
	empty := len(`{"x": ""}`)
	f.exec(t, `update aksara_operation_outbox set payload = jsonb_build_object('x', repeat('x', $2)) where id = $1`, id, bytes-empty)
}

// A number keeps its size in the table but not as text.
func TestClaimCountsTextNotStoredSize(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		rows := slices.Concat(f.fill(t, scope, 3, 1)...)
		f.exec(t, `update aksara_operation_outbox set payload = '{"n": 1e100000}' where id = any($1)`, rows)
		req := request(scope)
		req.Bytes = 250_000
		claim := f.claimWith(t, req)
		if len(claim.Rows) != 2 {
			t.Fatalf("claimed %d rows of 100 kB each, want the 2 that fit", len(claim.Rows))
		}
		for _, row := range claim.Rows {
			if want := int64(len(`{"n": }`) + 100_001); row.Bytes != want || int64(len(row.Payload)) != want {
				t.Errorf("%d bytes told, %d given, want %d", row.Bytes, len(row.Payload), want)
			}
		}
	})
}

// A payload that can't be held in memory is told of, not read.
func TestClaimLeavesHugePayloadsUnread(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		const most = 64 << 20
		scope := tenant(t, "acme")
		rows := slices.Concat(f.fill(t, scope, 2, 1)...)
		f.exec(t, `update aksara_operation_outbox set payload = (select jsonb_agg('1e100000'::jsonb) from generate_series(1, 700))
			where id = $1`, rows[0])
		if stored := value[int](t, f, "select pg_column_size(payload) from aksara_operation_outbox where id = $1", rows[0]); stored > 65536 {
			t.Fatalf("the payload takes %d bytes in the table, more than Aksara allows", stored)
		}
		req := request(scope)
		claim := f.claimWith(t, req)
		if got := ids(claim); !slices.Equal(got, rows[:1]) {
			t.Fatalf("claimed %d, want the first alone, since it takes the whole budget", got)
		}
		if row := claim.Rows[0]; row.Payload != nil || row.Bytes <= most {
			t.Errorf("payload of %d bytes given, %d told", len(row.Payload), row.Bytes)
		}
		results := f.settle(t, claim, relay.Verdict{Wait: relay.Park, Error: "too large"})
		if results[0].Status != relay.Written {
			t.Errorf("parking it: status %d", results[0].Status)
		}
		if got := ids(f.claim(t, scope)); !slices.Equal(got, rows[1:]) {
			t.Errorf("claimed %d after it was parked, want %d", got, rows[1:])
		}
	})
}

// Within an operation the budget never makes a hole: what stands behind a row that
// did not fit stays, however small it is.
func TestClaimBudgetKeepsOrder(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		operations := f.fill(t, scope, 2, 3) // rows lie version by version
		f.resize(t, operations[0][1], 5000)
		req := request(scope)
		req.Bytes = 1000
		var got [][]int64
		for claim := f.claimWith(t, req); len(claim.Rows) > 0; claim = f.claimWith(t, req) {
			got = append(got, ids(claim))
			f.settle(t, claim, relay.Verdict{Exported: true})
		}
		want := [][]int64{
			{operations[0][0], operations[1][0]},
			{operations[0][1]}, // alone, because the first always fits
			{operations[1][1], operations[0][2], operations[1][2]},
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("claims %d, want %d", got, want)
		}
	})
}
