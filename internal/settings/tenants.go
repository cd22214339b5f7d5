package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"outboxrelay/envelope"
)

// ParseTenants reads tenant ids as RELAY_TENANTS holds them: a JSON array of
// strings when the text begins with "[", else ids separated by commas. Each id
// passes [envelope.Tenant] and stands there once. The error tells what is wrong with
// which entry.
func ParseTenants(text string) ([]envelope.Scope, error) {
	if strings.HasPrefix(text, "[") {
		return parseTenantArray(text)
	}
	return parseTenantList(strings.Split(text, ","), "comma")
}

// ParseTenantLines reads tenant ids as RELAY_TENANTS_FILE holds them: a JSON array
// of strings when the text begins with "[", else one id a line. Blank lines are
// skipped. It also errs if there is no id at all.
func ParseTenantLines(text string) ([]envelope.Scope, error) {
	text = strings.TrimPrefix(text, "\ufeff") // some editors put a byte order mark there
	tenants, err := parseTenantLines(text)
	if err == nil && len(tenants) == 0 {
		return nil, errors.New("holds no tenant")
	}
	return tenants, err
}

func parseTenantLines(text string) ([]envelope.Scope, error) {
	if strings.HasPrefix(text, "[") {
		return parseTenantArray(text)
	}
	var ids []string
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			ids = append(ids, strings.TrimRight(line, "\r\n"))
		}
	}
	return parseTenantList(ids, "line end")
}

func parseTenantArray(text string) ([]envelope.Scope, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("is not valid UTF-8") // encoding/json would replace it
	}
	var ids []string
	if err := json.Unmarshal([]byte(text), &ids); err != nil {
		return nil, fmt.Errorf(`begins with "[" but is no JSON array of strings%s`, jsonPlace(err))
	}
	return scopesOf(ids)
}

// jsonPlace says where the JSON is wrong, if that is known.
func jsonPlace(err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprintf(" (look at byte %d)", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Sprintf(" (look at byte %d)", kind.Offset)
	}
	return ""
}

// parseTenantList refuses blanks around an id. They may belong to it or not; only a
// JSON array can tell.
func parseTenantList(ids []string, separator string) ([]envelope.Scope, error) {
	var problems problems
	for i, id := range ids {
		if id != "" && strings.TrimSpace(id) != id {
			problems.add(fmt.Errorf("entry %d: blank beside a %s; if it belongs to the id, give all ids as a JSON array", i+1, separator))
		}
	}
	if err := problems.err(); err != nil {
		return nil, err
	}
	return scopesOf(ids)
}

// scopesOf checks the ids, each by itself and all together.
func scopesOf(ids []string) ([]envelope.Scope, error) {
	var problems problems
	scopes := make([]envelope.Scope, 0, len(ids))
	first := make(map[string]int, len(ids))
	for i, id := range ids {
		scope, err := envelope.Tenant(id)
		if err != nil {
			problems.add(fmt.Errorf("entry %d: %w", i+1, err))
			continue
		}
		if at, again := first[id]; again {
			problems.add(fmt.Errorf("entry %d: tenant %.80q stands there already, as entry %d", i+1, id, at))
			continue
		}
		first[id] = i + 1
		scopes = append(scopes, scope)
	}
	if err := problems.err(); err != nil {
		return nil, err
	}
	return scopes, nil
}

// withNonTenant adds the non-tenant scope behind the tenants, if it is wanted.
func withNonTenant(tenants []envelope.Scope, nonTenant bool) []envelope.Scope {
	if nonTenant {
		return append(tenants, envelope.NonTenant())
	}
	return tenants
}
