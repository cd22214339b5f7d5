package main

import (
	"bytes"
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	command, o, err := parse([]string{"forward", "-database", "db", "-brokers", "a:1,b:2", "-batch", "7"}, &bytes.Buffer{})
	if err != nil || command != "forward" || o.database != "db" || !slices.Equal(o.brokers, []string{"a:1", "b:2"}) || o.batch != 7 {
		t.Errorf("forward: %s %+v, %v", command, o, err)
	}
	command, o, err = parse([]string{"fill", "-database", "db", "-topic", "events"}, &bytes.Buffer{})
	if err != nil || command != "fill" || o.topic != "events" {
		t.Errorf("fill: %s %+v, %v", command, o, err)
	}
	for _, args := range [][]string{nil, {"send"}, {"fill", "more"}, {"fill", "-brokers", "a:1"}} {
		if _, _, err := parse(args, &bytes.Buffer{}); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}

func TestMessageKeepsPayloadAndKey(t *testing.T) {
	t.Parallel()
	m := row{operation: "operation", payload: []byte(`{"a": 1}`)}.message()
	if string(m.Payload) != `{"a": 1}` {
		t.Errorf("payload = %s", m.Payload)
	}
	if got, err := key("topic", m); err != nil || got != "operation" {
		t.Errorf("key = %q, %v, want the operation", got, err)
	}
}

func TestProducerPromisesWhatTheRelayDoes(t *testing.T) {
	t.Parallel()
	config := producer()
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	if config.Producer.RequiredAcks != -1 || !config.Producer.Idempotent {
		t.Errorf("acks %d, idempotent %t", config.Producer.RequiredAcks, config.Producer.Idempotent)
	}
}
