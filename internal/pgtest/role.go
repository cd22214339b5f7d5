package pgtest

import (
	"net/url"
	"testing"
)

// Role makes a role that may log in, and returns the database's URL for it. Its name begins with prefix; attributes are those of
// CREATE ROLE, such as BYPASSRLS, and may be empty. It is dropped with the database.
func (db *DB) Role(t testing.TB, prefix, attributes string) string {
	t.Helper()
	c := db.cluster
	name, secret := prefix+"_"+c.name(), password()
	if err := c.admin("CREATE ROLE " + quote(name) + " LOGIN PASSWORD '" + secret + "' " + attributes); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.roles[db.Name] = append(c.roles[db.Name], name)
	return c.url(db.Name, url.UserPassword(name, secret))
}

// User returns the name of the role in a URL that Role returned, quoted for use in a GRANT.
func User(t testing.TB, address string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return quote(parsed.User.Username())
}
