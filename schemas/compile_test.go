package schemas_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"outboxrelay/schemas"
)

// compile makes a schema that is part of a document.
func compile(t *testing.T, document any, part string) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	const name = "urn:test:document"
	if err := compiler.AddResource(name, document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile(name + part)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// decode reads JSON, with numbers to the digit.
func decode(t *testing.T, text []byte) any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// asyncAPI is the AsyncAPI document as JSON has it.
func asyncAPI(t *testing.T) map[string]any {
	t.Helper()
	var document any
	if err := yaml.Unmarshal(schemas.AsyncAPI, &document); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text).(map[string]any)
}

// at walks down a document by names.
func at(t *testing.T, document any, names ...string) any {
	t.Helper()
	for _, name := range names {
		inner, ok := document.(map[string]any)
		if document = inner[name]; !ok || document == nil {
			t.Fatalf("there is no %s", name)
		}
	}
	return document
}
