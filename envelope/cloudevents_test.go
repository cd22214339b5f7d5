package envelope

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/binding/format"
	"github.com/cloudevents/sdk-go/v2/binding/spec"
)

// TestCloudEventsSDKReadsRecords reads golden records as a consumer with the CloudEvents SDK does.
func TestCloudEventsSDKReadsRecords(t *testing.T) {
	t.Parallel()
	for name, event := range goldenEvents(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := binding.ToEvent(t.Context(), newMessage(event.Record()))
			if err != nil {
				t.Fatal(err)
			}
			if err := got.Validate(); err != nil {
				t.Error(err)
			}
			operation := event.OperationID.String()
			for attribute, pair := range map[string][2]string{
				"specversion":     {got.SpecVersion(), "1.0"},
				"id":              {got.ID(), event.ID()},
				"source":          {got.Source(), event.Source()},
				"type":            {got.Type(), event.Type},
				"subject":         {got.Subject(), operation},
				"datacontenttype": {got.DataContentType(), "application/json"},
				"data":            {string(got.Data()), string(event.Data)},
			} {
				if pair[0] != pair[1] {
					t.Errorf("%s is %q, want %q", attribute, pair[0], pair[1])
				}
			}
			if !got.Time().Equal(event.Time) {
				t.Errorf("time is %v, want %v", got.Time(), event.Time)
			}
			want := map[string]string{
				"partitionkey": operation,
				"namespace":    event.Namespace,
				"stateversion": strings.TrimPrefix(event.ID(), operation+":"),
				"envelope":     "1",
			}
			if id, ok := event.Scope.Tenant(); ok {
				want["tenant"] = id
			}
			if len(got.Extensions()) != len(want) {
				t.Errorf("extensions are %v, want %v", got.Extensions(), want)
			}
			for name, value := range want {
				if got.Extensions()[name] != value {
					t.Errorf("extension %s is %v, want %q", name, got.Extensions()[name], value)
				}
			}
		})
	}
}

// message is a record as the SDK's Kafka binding presents one in the binary mode.
type message struct {
	headers map[string][]byte
	value   []byte
	version spec.Version
}

var (
	_ binding.Message               = (*message)(nil)
	_ binding.MessageMetadataReader = (*message)(nil)
)

const prefix = "ce_"

func newMessage(r Record) *message {
	versions := spec.WithPrefix(prefix)
	m := &message{headers: map[string][]byte{}, value: r.Value}
	for _, h := range r.Headers {
		m.headers[strings.ToLower(h.Key)] = h.Value
	}
	m.version = versions.Version(string(m.headers[versions.PrefixedSpecVersionName()]))
	return m
}

func (m *message) ReadEncoding() binding.Encoding {
	switch {
	case m.version == nil:
		return binding.EncodingUnknown
	case format.IsFormat(string(m.headers[HeaderContentType])):
		return binding.EncodingStructured
	default:
		return binding.EncodingBinary
	}
}

func (m *message) ReadStructured(context.Context, binding.StructuredWriter) error {
	return binding.ErrNotStructured
}

func (m *message) ReadBinary(_ context.Context, to binding.BinaryWriter) error {
	for name, value := range m.headers {
		var err error
		if name == HeaderContentType {
			err = to.SetAttribute(m.version.AttributeFromKind(spec.DataContentType), string(value))
		} else if attribute := m.version.Attribute(name); attribute != nil {
			err = to.SetAttribute(attribute, string(value))
		} else if extension, ok := strings.CutPrefix(name, prefix); ok {
			err = to.SetExtension(extension, string(value))
		}
		if err != nil {
			return err
		}
	}
	return to.SetData(io.NopCloser(bytes.NewReader(m.value)))
}

func (m *message) GetAttribute(kind spec.Kind) (spec.Attribute, any) {
	attribute := m.version.AttributeFromKind(kind)
	if attribute == nil {
		return nil, nil
	}
	return attribute, string(m.headers[attribute.PrefixedName()])
}

func (m *message) GetExtension(name string) any { return string(m.headers[prefix+name]) }

func (m *message) Finish(error) error { return nil }
