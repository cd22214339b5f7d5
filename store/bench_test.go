package store_test

import (
	"fmt"
	"testing"
	"time"

	"outboxrelay/relay"
)

// BenchmarkClaimAndMark takes a backlog through claim and mark, batch by batch, and
// tells the two apart. Three events an operation, version by version.
func BenchmarkClaimAndMark(b *testing.B) {
	for _, v := range variants() {
		for _, batch := range []int{100, 500, 1000} {
			b.Run(fmt.Sprintf("%s/batch=%d", v.name, batch), func(b *testing.B) {
				benchmarkClaimAndMark(b, newFixture(b, v), batch)
			})
		}
	}
}

func benchmarkClaimAndMark(b *testing.B, f *fixture, batch int) {
	const versions = 3
	scope := tenant(b, "acme")
	f.fill(b, scope, (b.N+1)*batch/versions+1, versions)
	f.exec(b, "vacuum analyze aksara_operation_outbox, aksara_operations, aksara_operation_transitions")
	var claiming, marking time.Duration
	round := func() {
		req := request(scope)
		req.Rows, req.Bytes = batch, 1<<30
		start := time.Now()
		claim := f.claimWith(b, req)
		claimed := time.Now()
		if len(claim.Rows) != batch {
			b.Fatalf("claimed %d rows, want %d", len(claim.Rows), batch)
		}
		f.settle(b, claim, relay.Verdict{Exported: true})
		claiming += claimed.Sub(start)
		marking += time.Since(claimed)
	}
	round() // the first prepares the statements
	claiming, marking = 0, 0
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		round()
	}
	rows := float64(b.N * batch)
	b.ReportMetric(float64(claiming.Microseconds())/rows, "claim-µs/row")
	b.ReportMetric(float64(marking.Microseconds())/rows, "mark-µs/row")
	b.ReportMetric(rows/b.Elapsed().Seconds(), "rows/s")
}
