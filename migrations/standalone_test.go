package migrations

import (
	"net/url"
	"strings"
	"testing"
)

func TestStandaloneSchemaAndTables(t *testing.T) {
	t.Parallel()
	db := emptyDatabase(t)
	for schema, set := range map[string]struct {
		up   error
		want State
	}{
		"public": {StandaloneSchema(t.Context(), db.URL, "public"), Ready},
		"tables": {StandaloneTables(t.Context(), db.URL, "tables"), Missing},
		"again":  {StandaloneSchema(t.Context(), db.URL, "again"), Ready},
	} {
		if set.up != nil {
			t.Fatal(set.up)
		}
		wantState(t, db.Conn(t), schema, set.want)
	}
}

func TestStandaloneSchemaKeepsThePasswordToItself(t *testing.T) {
	t.Parallel()
	address, err := url.Parse(emptyDatabase(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword("nobody here", "hunter2")
	address.Path = "/nowhere"
	err = StandaloneSchema(t.Context(), address.String(), "s")
	mustContain(t, err, "connecting")
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error tells the password: %v", err)
	}
}
