package settings

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"

	"outboxrelay/envelope"
)

// Row is one variable with the value that holds.
type Row struct {
	Name, Type string
	// Default is the value of an unset variable, or a few words on what holds then.
	Default string
	// Value is what holds; "***" for a secret that is set, empty if there is none. It
	// may hold what isn't printable.
	Value string
	// From is the variable that gave the value, Name or its _FILE form; empty if it
	// wasn't set.
	From    string
	Meaning string
}

// Describe lists every variable with its effective value, in the order of
// [Variables]. It shows no secret.
func Describe(s *Settings) []Row { return slices.Clone(s.rows) }

func (l *loader) describe(s *Settings, t texts) []Row {
	values := textsByName(t)
	values["RELAY_WORKER_ID"] = s.WorkerID
	values["RELAY_TENANTS"] = tenantArray(s.Scopes)
	if s.Instance >= 0 {
		values["RELAY_INSTANCE"] = strconv.Itoa(s.Instance)
	}
	var rows []Row
	for _, v := range Variables() {
		row := Row{Name: v.Name, Type: v.Type(), Default: cmp.Or(v.Default, v.Note), Value: values[v.Name], Meaning: v.Meaning}
		if v.Secret && row.Value != "" {
			row.Value = "***"
		}
		if l.given[v.Name] != "" {
			row.From = v.Name
		} else if l.fileOf(v) != "" {
			row.From = v.Name + fileSuffix
		}
		rows = append(rows, row)
	}
	return rows
}

// textsByName is the texts under the names of their variables.
func textsByName(t texts) map[string]string {
	values := map[string]string{}
	v := reflect.ValueOf(t)
	for i := range v.NumField() {
		values[v.Type().Field(i).Tag.Get("env")] = v.Field(i).String()
	}
	return values
}

// tenantArray shows tenants in the form that can hold any id, whatever form they
// came in.
func tenantArray(scopes []envelope.Scope) string {
	var ids []string
	for _, scope := range scopes {
		if id, isTenant := scope.Tenant(); isTenant {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	text, err := json.Marshal(ids)
	if err != nil {
		return "" // strings can always be encoded
	}
	return string(text)
}
