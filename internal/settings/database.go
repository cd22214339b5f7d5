package settings

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

func (l *loader) database(t texts) Database {
	d := Database{
		URL:      l.secret("RELAY_DATABASE_URL", t.DatabaseURL),
		Password: l.secret("RELAY_DATABASE_PASSWORD", t.DatabasePassword),
		Schema:   l.schema(t.DatabaseSchema),
		Pooled:   l.boolean("RELAY_DATABASE_POOLED", t.DatabasePooled),
	}
	if l.sound("RELAY_DATABASE_URL") {
		if problem := connStringProblem(t.DatabaseURL); problem != "" {
			l.fault("RELAY_DATABASE_URL", "%s", problem)
		}
	}
	return d
}

// secret hides a variable's text and remembers its file, if it came from one.
func (l *loader) secret(name, text string) Secret {
	return hide(hidden{name: name, value: text, file: l.fileOf(variable(name))})
}

// schema is a bare identifier; Postgres would silently cut a longer one.
func (l *loader) schema(text string) string {
	const name, longest = "RELAY_DATABASE_SCHEMA", 63
	if len(text) > longest {
		l.fault(name, "is %d bytes long: give at most %d", len(text), longest)
		return text
	}
	return l.plain(name, text)
}

// connStringProblem says what is wrong with a connection string, or nothing. It
// repeats no part of it, nor what pgx says, whose masking of passwords is a best
// effort. An empty one stands for libpq's PG* variables, which pgx looks up itself.
func connStringProblem(connString string) string {
	const encode = `in a URL, percent-encode each of # % [ { @ : / ? in a user or password, or use RELAY_DATABASE_PASSWORD`
	if connString != "" && strings.TrimSpace(connString) == "" {
		return "is blank" // pgx would take it for an empty one
	}
	if strayAt(connString) {
		// pgx would take the rest of a password for a host or a database, and errors
		// would show it.
		return "holds an @ that doesn't end the user and password: " + encode + ", and write %40 elsewhere"
	}
	if _, err := pgx.ParseConfig(withoutFiles(connString)); err != nil {
		if connString == "" {
			return "isn't set, and libpq's PG* variables are no valid connection either: check them, PGPORT and PGSSLMODE first"
		}
		return "is no valid connection string, such as postgres://user@host:5432/database or host=... user=... " +
			"(its PG* variables count too): check the port and sslmode, and " + encode
	}
	return ""
}

// strayAt tells whether a URL holds an @ other than the one behind the user.
func strayAt(connString string) bool {
	rest, isURL := cutScheme(connString)
	if !isURL {
		return false
	}
	user, host, found := strings.Cut(rest, "@")
	return found && (strings.Contains(user, "/") || strings.Contains(host, "@"))
}

// withoutFiles makes pgx check the text alone: a certificate that isn't there yet is
// no fault of the configuration. Of a parameter given twice the last counts.
func withoutFiles(connString string) string {
	rest, isURL := cutScheme(connString)
	if !isURL {
		return connString + " sslrootcert='' sslcert='' sslkey=''"
	}
	separator := "?"
	if _, host, found := strings.Cut(rest, "@"); found {
		rest = host
	}
	if strings.Contains(rest, "?") {
		separator = "&"
	}
	return connString + separator + "sslrootcert=&sslcert=&sslkey="
}

// cutScheme splits off the scheme by which pgx knows a URL.
func cutScheme(connString string) (rest string, isURL bool) {
	if rest, isURL = strings.CutPrefix(connString, "postgres://"); isURL {
		return rest, true
	}
	return strings.CutPrefix(connString, "postgresql://")
}
