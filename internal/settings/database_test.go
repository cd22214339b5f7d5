package settings

import (
	"strings"
	"testing"
)

// Not parallel: pgx reads libpq's variables from the process.
func TestPGVariables(t *testing.T) {
	env := with("RELAY_DATABASE_URL", "")
	t.Setenv("PGHOST", "db")
	t.Setenv("PGSSLROOTCERT", "/not/there/yet")
	mustLoad(t, env, nil)

	t.Setenv("PGPORT", "pa55")
	faults := loadFaults(t, env, nil)
	wantFault(t, faults, "PG* variables", "RELAY_DATABASE_URL")
	if strings.Contains(faults.Error(), "pa55") {
		t.Errorf("the value is shown: %v", faults)
	}
	mustLoad(t, with("RELAY_DATABASE_URL", "postgres://db:5432/app"), nil)
}
