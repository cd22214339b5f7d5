package store_test

import (
	"testing"

	"outboxrelay/store"
)

func TestParseEventID(t *testing.T) {
	t.Parallel()
	const operation = "6f1c0d3e-8a55-4d0f-9a67-0d5b6f1a2c3d"
	for _, text := range []string{"1", "9223372036854775807", operation + ":1", operation + ":9223372036854775807"} {
		if id, err := store.ParseEventID(text); err != nil || id.String() != text {
			t.Errorf("%q: %s, %v", text, id, err)
		}
	}
	for _, text := range []string{
		"", "0", "-1", "+1", "01", "1.0", "9223372036854775808", "x", " 1", "1 ",
		operation, operation + ":", operation + ":0", operation + ":01", operation + ":-1", operation + ":9223372036854775808",
		operation + ":1:1", ":1", "1:1", "{" + operation + "}:1", "urn:uuid:" + operation + ":1", "6f1c0d3e8a554d0f9a670d5b6f1a2c3d:1",
	} {
		if id, err := store.ParseEventID(text); err == nil {
			t.Errorf("%q: %s, want an error", text, id)
		}
	}
}
