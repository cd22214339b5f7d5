package store

import (
	"fmt"
	"strings"
	"testing"
	"text/template"
)

// The statements are what text/template makes of the files, whatever they are made for.
func TestTemplatesAreThoseOfTheLibrary(t *testing.T) {
	t.Parallel()
	ours := mustParse(sqlFiles, "sql/*.sql")
	library := template.Must(template.ParseFS(sqlFiles, "sql/*.sql"))
	for name := range ours {
		for _, indexed := range []bool{false, true} {
			for kind := range 3 {
				for _, do := range []string{"", "retry", "discard", "behind", "dead-letter"} {
					data := map[string]any{
						"Schema": `"a schema"`, "Rows": 7, "Looks": 11, "Abandoned": kind == 1, "Exact": kind == 2, "Gated": kind != 1, "MostMarks": 3,
						"Durable": indexed, "Indexed": indexed, "MostInline": 64, "MostBytes": 65, "Do": do,
					}
					var want strings.Builder
					if err := library.ExecuteTemplate(&want, name, data); err != nil {
						t.Fatal(err)
					}
					if got := ours.render(name, data); got != want.String() {
						t.Errorf("%s with %v is\n%s\nwant\n%s", name, data, got, &want)
					}
				}
			}
		}
	}
}

// What they can't express ends the first test that runs, not a query in production.
func TestTemplatesRefuseWhatTheyDoNotUnderstand(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{{.Unknown}}`, `{{range .Rows}}{{end}}`, `{{.Rows | not}}`, `{{not .Rows .Rows}}`} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if found := fmt.Sprint(recover()); !strings.Contains(found, "statements can't hold") {
					t.Errorf("it ended with %s", found)
				}
			}()
			parsed("x", text).render("x", map[string]any{"Rows": true})
		})
	}
}
