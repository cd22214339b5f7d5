package envelope

import (
	"bytes"
	"fmt"
	"testing"
)

// A payload may hold whatever the envelope holds, under any of its names: consumers still read the row's own.
func TestPayloadSpeaksOnlyForItself(t *testing.T) {
	t.Parallel()
	plain := testEvent(t)
	want := plain.Record()
	for _, name := range []string{
		"tenant", "Tenant", "tenant_id", "tenant_scope", "namespace", "ce_tenant", "ce_id", "ce_source", "ce_namespace",
		"topic", "key", "headers", "traceparent", "tracestate", "time", "created_at",
	} {
		data := fmt.Appendf(nil, `{"state_version": 3, %q: "other", %q: {"ce_tenant": "other"}}`, name, name)
		event, err := New(plain.Namespace, plain.Scope, plain.OperationID, plain.Type, plain.Time, data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := event.Record()
		want.Value = data
		if !bytes.Equal(formatGolden(got), formatGolden(want)) {
			t.Errorf("%s in the payload changes the record to\n%s", name, formatGolden(got))
		}
	}
}
