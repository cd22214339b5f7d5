package settings

import (
	"strings"
	"testing"

	"outboxrelay/envelope"
)

func TestTopicFor(t *testing.T) {
	t.Parallel()
	acme := tenant(t, "acme")
	for _, c := range []struct {
		template string
		scope    envelope.Scope
		want     string // empty for an error
	}{
		{"events", acme, "events"},
		{"events", envelope.NonTenant(), "events"},
		{"events.{tenant}", acme, "events.acme"},
		{"{tenant}-{tenant}", acme, "acme-acme"},
		{"{tenant}", tenant(t, "A_b-C.9"), "A_b-C.9"},
		{"{tenant}", tenant(t, "{tenant}"), ""},
		{"{tenant}", envelope.NonTenant(), ""},
		{"{tenant}", tenant(t, "a b"), ""},
		{"{tenant}", tenant(t, "a/b"), ""},
		{"{tenant}", tenant(t, "é"), ""},
		{"{tenant}", tenant(t, strings.Repeat("x", 249)), strings.Repeat("x", 249)},
		{"{tenant}", tenant(t, strings.Repeat("x", 250)), ""},
		{"{tenants}", acme, ""},
		{"", acme, ""},
		{".", acme, ""},
	} {
		got, err := TopicFor(c.template, c.scope)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("TopicFor(%q, %v) = %q, %v; want %q", c.template, c.scope, got, err, c.want)
		}
	}
}
