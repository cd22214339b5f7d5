// Package schemas describes the relay's events to tools: a JSON Schema (2020-12) of the payload that Aksara writes, and an
// AsyncAPI 3.0 document of topics, headers and payload. docs/consumers.md says the same to people.
package schemas

import _ "embed"

// Transition is the JSON Schema of the data of an event of type aksara.operation.transition.
//
//go:embed aksara.operation.transition.json
var Transition []byte

// AsyncAPI is the AsyncAPI document. It refers to Transition by a relative path.
//
//go:embed asyncapi.yaml
var AsyncAPI []byte
