package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
	"outboxrelay/internal/settings"
)

// tailed is one line of "relay tail".
type tailed struct {
	Topic        string          `json:"topic"`
	Partition    int32           `json:"partition"`
	Offset       int64           `json:"offset"`
	Key          string          `json:"key"`
	Namespace    string          `json:"namespace,omitempty"`
	Tenant       *string         `json:"tenant,omitempty"`
	ID           string          `json:"id,omitempty"`
	Source       string          `json:"source,omitempty"`
	Type         string          `json:"type,omitempty"`
	Time         string          `json:"time,omitempty"`
	StateVersion int64           `json:"state_version,omitempty"`
	Data         json.RawMessage `json:"data,omitempty"`
	Error        string          `json:"error,omitempty"` // why the record is no event
}

// tail prints the topic's events.
func (a *app) tail(ctx context.Context, args []string) error {
	set := flags("tail")
	beginning := set.Bool("from-beginning", false, "")
	most := set.Int("max", 0, "")
	if err := parse(set, args); err != nil {
		return err
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	client, err := tailClient(s, *beginning)
	if err != nil {
		return err
	}
	defer client.Close()
	out := json.NewEncoder(a.stdout)
	out.SetEscapeHTML(false)
	for printed := 0; ; {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		for _, e := range fetches.Errors() {
			return fmt.Errorf("read topic %q: %w", e.Topic, e.Err)
		}
		for iter := fetches.RecordIter(); !iter.Done(); {
			if err := out.Encode(toTailed(iter.Next())); err != nil {
				return err
			}
			if printed++; printed == *most {
				return nil
			}
		}
	}
}

// tailClient reads the topics of all configured scopes.
func tailClient(s *settings.Settings, beginning bool) (*kgo.Client, error) {
	opts, err := connection(s, nil).Options()
	if err != nil {
		return nil, err
	}
	topics := map[string]bool{}
	for _, scope := range s.Scopes {
		topics[topicOf(s)(scope)] = true
	}
	for topic := range topics {
		opts = append(opts, kgo.ConsumeTopics(topic))
	}
	at := kgo.NewOffset().AtEnd()
	if beginning {
		at = kgo.NewOffset().AtStart()
	}
	return kgo.NewClient(append(opts, kgo.ConsumeResetOffset(at), kgo.FetchIsolationLevel(kgo.ReadCommitted()))...)
}

func toTailed(r *kgo.Record) tailed {
	line := tailed{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: string(r.Key)}
	record := envelope.Record{Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		record.Headers = append(record.Headers, envelope.Header{Key: h.Key, Value: h.Value})
	}
	e, err := envelope.Parse(record)
	if err != nil {
		line.Error = err.Error()
		return line
	}
	line.Namespace, line.ID, line.Source, line.Type = e.Namespace, e.ID(), e.Source(), e.Type
	line.Time, line.StateVersion, line.Data = e.Time.Format(time.RFC3339Nano), e.StateVersion, e.Data
	if tenant, ok := e.Scope.Tenant(); ok {
		line.Tenant = &tenant
	}
	return line
}
