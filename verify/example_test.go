package verify_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
	"outboxrelay/verify"
)

// An application's test ends with a look at what its relay has delivered.
func ExampleRun() {
	_ = func(t *testing.T, pool *pgxpool.Pool, acme envelope.Scope) {
		result, err := verify.Run(t.Context(), verify.Config{
			Namespace: "orders",
			Scopes:    []envelope.Scope{acme},
			Topic:     func(envelope.Scope) string { return "aksara.operation.transitions" },
			Database:  pool,
			Kafka:     []kgo.Opt{kgo.SeedBrokers("localhost:9092")},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := result.Err(); err != nil {
			t.Error(err)
		}
		if n := result.Find(verify.Waiting).Count; n > 0 {
			t.Errorf("%d events were not exported in time", n)
		}
	}
}
