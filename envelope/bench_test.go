package envelope

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// benchmarkPayloads are what Aksara writes, in its size and in larger ones.
func benchmarkPayloads(operation uuid.UUID) map[string][]byte {
	const usual = `{"event": "retry_scheduled", "to_state": "ready", "attempt_id": null, "from_state": "running", ` +
		`"reason_code": "%s", "operation_id": "%s", "state_version": 12}`
	return map[string][]byte{
		"usual":  fmt.Appendf(nil, usual, "timeout", operation),
		"64 KiB": fmt.Appendf(nil, usual, strings.Repeat("reason ", 64<<10/7), operation),
	}
}

func BenchmarkNew(b *testing.B) {
	operation, created := uuid.New(), time.Now()
	for name, payload := range benchmarkPayloads(operation) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(payload)))
			for b.Loop() {
				if _, err := New("billing", NonTenant(), operation, "aksara.operation.transition", created, payload); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRecord(b *testing.B) {
	operation := uuid.New()
	scope, err := Tenant("customer 7")
	if err != nil {
		b.Fatal(err)
	}
	event, err := New("billing", scope, operation, "aksara.operation.transition", time.Now(), benchmarkPayloads(operation)["usual"])
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		event.Record()
	}
}

func BenchmarkParse(b *testing.B) {
	operation := uuid.New()
	event, err := New("billing", NonTenant(), operation, "aksara.operation.transition", time.Now(), benchmarkPayloads(operation)["usual"])
	if err != nil {
		b.Fatal(err)
	}
	record := event.Record()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(record); err != nil {
			b.Fatal(err)
		}
	}
}
