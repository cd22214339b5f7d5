package envelope

import (
	"strings"
	"testing"
)

// secret stands in test payloads, and must stand in no error.
const secret = "s3cret"

const (
	ownID   = `"operation_id": "0190f3a2-7c4e-7d11-9b5a-3e6f8a2b4c1d"`
	upperID = `"operation_id": "0190F3A2-7C4E-7D11-9B5A-3E6F8A2B4C1D"`
)

func TestPayloadsTaken(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		data    string
		version int64
	}{
		"usual":                   {`{"event": "claimed", ` + ownID + `, "state_version": 7}`, 7},
		"smallest":                {`{"state_version":1}`, 1},
		"largest version":         {`{"state_version": 9223372036854775807}`, 1<<63 - 1},
		"beyond 2^53":             {`{"state_version": 9007199254740993}`, 1<<53 + 1},
		"blanks":                  {" \t\r\n{ \"state_version\" :\n2\t} \n", 2},
		"upper-case operation":    {`{` + upperID + `, "state_version": 1}`, 1},
		"no operation":            {`{"state_version": 1, "operation": "other"}`, 1},
		"null operation":          {`{"state_version": 1, "operation_id": null}`, 1},
		"keys in another case":    {`{"State_Version": 9, "state_version": 1, "STATE_VERSION": "x"}`, 1},
		"operation in other case": {`{"state_version": 1, "Operation_ID": "other"}`, 1},
		"escaped keys":            {`{"state\u005fversion": 3, "\u006fperation_id": "0190f3a2-7c4e-7d11-9b5a-3e6f8a2b4c1\u0064"}`, 3},
		"nested keys":             {`{"a": {"state_version": 5, "operation_id": "other"}, "b": [{"state_version": 6}], "state_version": 4}`, 4},
		"text like keys":          {`{"a": "\"state_version\": 5", "b\\": "}{][,:\\", "state_version": 4}`, 4},
		"empty key and values":    {`{"": "", "a": {}, "b": [], "state_version": 4}`, 4},
		"last of two keys":        {`{"state_version": "x", "state_version": 2}`, 2}, // a jsonb column has no such
		"deep":                    {`{"a": ` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `, "state_version": 4}`, 4},
		"other numbers":           {`{"a": 1e400, "b": -0, "c": 123456789012345678901234567890, "state_version": 4}`, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			event, err := New("billing", NonTenant(), testOperation, testType, testTime, []byte(test.data))
			if err != nil {
				t.Fatal(err)
			}
			if event.StateVersion != test.version {
				t.Errorf("state version %d, want %d", event.StateVersion, test.version)
			}
			if got := string(event.Record().Value); got != test.data {
				t.Errorf("value is %q, want the payload as it was", got)
			}
		})
	}
}

func TestPayloadFaults(t *testing.T) {
	t.Parallel()
	const noObject, noVersion, otherOperation = "no JSON object", "no positive integer state_version", "another operation"
	version := func(value string) string { return `{"a": "` + secret + `", "state_version": ` + value + `}` }
	operation := func(value string) string { return `{"state_version": 1, "operation_id": ` + value + `}` }
	for name, test := range map[string]struct{ data, reason string }{
		"nothing":           {"", noObject},
		"blanks":            {" \n", noObject},
		"array":             {`[{"state_version": 1}]`, noObject},
		"empty array":       {`[]`, noObject},
		"number":            {`1`, noObject},
		"string":            {`"` + secret + `"`, noObject},
		"string of object":  {`"{\"state_version\": 1}"`, noObject},
		"null":              {`null`, noObject},
		"true":              {`true`, noObject},
		"cut off":           {`{"state_version": 1, "a": "` + secret, noObject},
		"two values":        {`{"state_version": 1} {}`, noObject},
		"trailing comma":    {`{"state_version": 1,}`, noObject},
		"byte order mark":   {"\ufeff" + `{"state_version": 1}`, noObject},
		"no-break space":    {"\u00a0" + `{"state_version": 1}`, noObject},
		"deeper than JSON":  {`{"a": ` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `, "state_version": 4}`, noObject},
		"empty object":      {`{}`, noVersion},
		"missing":           {`{"a": "` + secret + `"}`, noVersion},
		"another case":      {`{"State_Version": 1, "STATE_VERSION": 1, "stateVersion": 1}`, noVersion},
		"nested":            {`{"a": {"state_version": 1}}`, noVersion},
		"zero":              {version("0"), noVersion},
		"minus zero":        {version("-0"), noVersion},
		"negative":          {version("-1"), noVersion},
		"float":             {version("1.0"), noVersion},
		"fraction":          {version("1.5"), noVersion},
		"exponent":          {version("1e3"), noVersion},
		"version in quotes": {version(`"1"`), noVersion},
		"version null":      {version("null"), noVersion},
		"version true":      {version("true"), noVersion},
		"version array":     {version("[1]"), noVersion},
		"version object":    {version("{}"), noVersion},
		"2^63":              {version("9223372036854775808"), noVersion},
		"huge":              {version(strings.Repeat("9", 400)), noVersion},

		"another operation":   {operation(`"0190f3a2-7c4e-7d11-9b5a-3e6f8a2b4c1e"`), otherOperation},
		"operation in braces": {operation(`"{0190f3a2-7c4e-7d11-9b5a-3e6f8a2b4c1d}"`), otherOperation},
		"operation as URN":    {operation(`"urn:uuid:0190f3a2-7c4e-7d11-9b5a-3e6f8a2b4c1d"`), otherOperation},
		"no hyphens":          {operation(`"0190f3a27c4e7d119b5a3e6f8a2b4c1d"`), otherOperation},
		"blank behind":        {operation(`"0190f3a2-7c4e-7d11-9b5a-3e6f8a2b4c1d "`), otherOperation},
		"empty operation":     {operation(`""`), otherOperation},
		"operation number":    {operation(`0`), otherOperation},
		"operation object":    {operation(`{"a": "` + secret + `"}`), otherOperation},
		"operation text":      {operation(`"` + secret + `"`), otherOperation},
		"escaped key":         {`{"state_version": 1, "operation\u005fid": "` + secret + `"}`, otherOperation},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New("billing", NonTenant(), testOperation, testType, testTime, []byte(test.data))
			checkFault(t, err, test.reason)
		})
	}
}
