package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
	"outboxrelay/internal/settings"
)

// tailTimeout bounds the wait for a first answer of the brokers.
const tailTimeout = 10 * time.Second

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
	beginning := set.Bool("from-beginning", false, "begin with the oldest event instead of the next")
	most := set.Int("max", 0, "end after `N` events")
	if err := parse(set, args); err != nil {
		return err
	}
	if *most < 0 {
		return usageError("--max must be 1 or more; without it all events are printed")
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
	if err := readable(ctx, client, s); err != nil {
		return err
	}
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
	for _, topic := range topicsOf(s) {
		opts = append(opts, kgo.ConsumeTopics(topic))
	}
	at := kgo.NewOffset().AtEnd()
	if beginning {
		at = kgo.NewOffset().AtStart()
	}
	return kgo.NewClient(append(opts, kgo.ConsumeResetOffset(at), kgo.FetchIsolationLevel(kgo.ReadCommitted()))...)
}

// topicsOf is the topics of all configured scopes, each once.
func topicsOf(s *settings.Settings) []string {
	topics := map[string]bool{}
	for _, scope := range s.Scopes {
		topics[topicOf(s)(scope)] = true
	}
	return slices.Sorted(maps.Keys(topics))
}

// readable says why the topics can't be read, where the client would wait for ever.
func readable(ctx context.Context, client *kgo.Client, s *settings.Settings) error {
	ctx, cancel := context.WithTimeout(ctx, tailTimeout)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		return fmt.Errorf("no broker of RELAY_KAFKA_BROKERS answers: %w", err)
	}
	topics, err := kadm.NewClient(client).ListTopics(ctx, topicsOf(s)...)
	if err != nil {
		return fmt.Errorf("look for the topics: %w", err)
	}
	return topics.Error()
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
