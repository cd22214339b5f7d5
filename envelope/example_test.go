package envelope_test

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
)

// A consumer reads a record and keeps (source, id) to recognise a second delivery.
func ExampleParse() {
	scope, err := envelope.Tenant("eu/west 7")
	if err != nil {
		fmt.Println(err)
		return
	}
	operation := uuid.MustParse("0190f3a2-7c4e-7d11-9b5a-3e6f8a2b4c1d")
	sent, err := envelope.New("billing", scope, operation, "aksara.operation.transition", time.Now(), []byte(`{"state_version": 3}`))
	if err != nil {
		fmt.Println(err)
		return
	}

	event, err := envelope.Parse(sent.Record())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(event.Source())
	fmt.Println(event.ID())
	fmt.Println(event.Scope)
	// Output:
	// /namespaces/billing/tenants/eu%2Fwest%207
	// 0190f3a2-7c4e-7d11-9b5a-3e6f8a2b4c1d:3
	// tenant "eu/west 7"
}
