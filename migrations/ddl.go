package migrations

import (
	"embed"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed sql/*.sql
var files embed.FS

// ddl gives the statements of the embedded files for one schema and role.
type ddl struct {
	names *strings.Replacer
}

// newDDL uses psql's spelling of a variable that is to be quoted as an identifier, so that the files run there as well.
func newDDL(schema, role string) *ddl {
	return &ddl{names: strings.NewReplacer(`:"schema"`, quote(schema), `:"role"`, quote(role))}
}

// text is the named file's statement. It panics if there is no such file: names are constants of this package.
func (d *ddl) text(name string) string {
	text, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(d.names.Replace(string(text)))
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
