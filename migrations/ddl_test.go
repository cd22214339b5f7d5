package migrations

import (
	"strings"
	"testing"
)

func TestStatementsNameWhatTheyAreGiven(t *testing.T) {
	t.Parallel()
	entries, err := files.ReadDir("sql")
	if err != nil {
		t.Fatal(err)
	}
	d := newDDL(`:"role"`, `a"b`) // a name is put in as it is, whatever it looks like
	for _, entry := range entries {
		text := d.text(strings.TrimSuffix(entry.Name(), ".sql"))
		if !strings.Contains(text, `":""role"""`) {
			t.Errorf("%s does not name the schema", entry.Name())
		}
		if strings.Contains(text, `:"schema"`) || strings.Contains(text, `:"role"`) {
			t.Errorf("%s has a variable left", entry.Name())
		}
		if granted := strings.HasPrefix(entry.Name(), "grant"); granted != strings.Contains(text, `to "a""b"`) {
			t.Errorf("%s: role", entry.Name())
		}
	}
}
