package envelope

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// readPayload takes the state version out of a payload and makes sure that it speaks
// of no other operation. Keys are matched exactly; encoding/json would fold their
// case when decoding into a struct. Values are not decoded, so no number loses digits.
func readPayload(operation uuid.UUID, data []byte) (version int64, err error) {
	if trimmed := bytes.TrimLeft(data, blanks); len(trimmed) == 0 || trimmed[0] != '{' || !json.Valid(data) {
		return 0, &Fault{"the payload is no JSON object"}
	}
	var stateVersion, operationID []byte
	members(data, func(key, value []byte) {
		switch name, _ := unquote(key); string(name) {
		case "state_version":
			stateVersion = value
		case "operation_id":
			operationID = value
		}
	})
	version, ok := positiveInteger(string(stateVersion))
	if !ok {
		return 0, &Fault{"the payload has no positive integer state_version"}
	}
	if !namesOnly(operation, operationID) {
		return 0, &Fault{"the payload names another operation than its row"}
	}
	return version, nil
}

// positiveInteger reads the decimal form of 1 to 2^63-1, without sign, leading
// zeros, fraction or exponent.
func positiveInteger(text string) (n int64, ok bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n > 0 && strconv.FormatInt(n, 10) == text
}

// namesOnly reports whether the payload's operation_id, if it has one, is the row's.
func namesOnly(operation uuid.UUID, field []byte) bool {
	if field == nil || string(field) == "null" {
		return true
	}
	text, ok := unquote(field)
	return ok && strings.EqualFold(string(text), operation.String())
}

const blanks = " \t\r\n"

// members calls member for each key and value of a valid JSON object, both as they
// stand there. It takes a fraction of what decoding into a map does.
func members(object []byte, member func(key, value []byte)) {
	rest := bytes.TrimLeft(object, blanks)
	for {
		rest = bytes.TrimLeft(rest[1:], blanks) // past the brace or comma
		if rest[0] == '}' {
			return
		}
		var key, value []byte
		key, rest = cutValue(rest)
		value, rest = cutValue(bytes.TrimLeft(rest[1:], blanks)) // past the colon
		member(key, value)
		if rest[0] == '}' {
			return
		}
	}
}

// cutValue cuts the value off that valid JSON begins with, and the blanks behind it.
func cutValue(text []byte) (value, rest []byte) {
	end := 0
	for depth := 0; end < len(text); end++ {
		c := text[end]
		if depth == 0 && end > 0 && (c == ',' || c == ':' || c == '}' || c == ']') {
			break
		}
		switch c {
		case '"':
			end += quoted(text[end:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
	}
	return bytes.TrimRight(text[:end], blanks), text[end:]
}

// quoted is the length of the string that text begins with, its quotes included.
func quoted(text []byte) int {
	n := 1
	for ; text[n] != '"'; n++ {
		if text[n] == '\\' {
			n++
		}
	}
	return n + 1
}

// unquote gives the text of a JSON string; ok is false for any other value.
func unquote(value []byte) (text []byte, ok bool) {
	if value[0] != '"' {
		return nil, false
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return value[1 : len(value)-1], true
	}
	var decoded string
	err := json.Unmarshal(value, &decoded)
	return []byte(decoded), err == nil
}
