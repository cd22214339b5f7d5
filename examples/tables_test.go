package examples

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"outboxrelay/internal/pgtest"
)

// The page's command for the consumers' tables makes them and has nothing to say.
func TestTablesOfThePage(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile(`(?m)^    (psql .*)$`).FindStringSubmatch(read(t, "README.md"))
	if command == nil {
		t.Fatal("the page holds no command")
	}
	db := pgtest.Database(t, pgtest.Setup{Name: "tables"})
	shell := exec.Command("sh", "-c", command[1])
	shell.Dir = ".."
	shell.Env = []string{"PATH=" + os.Getenv("PATH"), "DATABASE_URL=" + db.URL}
	if out, err := shell.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%s: %v\n%s", command[1], err, out)
	}
	db.Exec(t, `select from relay_inbox, operation_state`)
}
