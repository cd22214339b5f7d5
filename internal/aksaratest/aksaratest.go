// Package aksaratest gives tests the real Aksara: the Python framework, pinned, in an environment of its own. Tests let it
// create its tables and write operations through its public services, run its own outbox exporter beside the relay, and
// read topics with a Kafka client and a CloudEvents SDK that share no code with ours.
//
// Python runs as child processes, one for each call, which take their options as JSON and answer in JSON. A test that needs
// this and can't have it fails with a message that says what to install.
package aksaratest

import (
	"net/url"
	"strings"
	"testing"
)

// NonTenant is the scope of operations without a tenant, as the tables' tenant_scope column names it. All other scopes are
// tenant ids: Aksara reserves this one.
const NonTenant = "__aksara_global__"

// Install returns the path of a Python interpreter that can import everything in requirements.txt. The first call on a
// machine makes the environment below the user's cache folder, which takes some ten seconds and a Python package index;
// the others find it there. Tests of several processes may call it at once.
func Install(t testing.TB) string {
	t.Helper()
	python, err := shared()
	if err != nil {
		t.Fatalf("aksaratest: %v", err)
	}
	return python
}

// WithSchema returns databaseURL with schema as its search path, which is how Aksara is told to use another schema than
// public. All functions of this package take such a URL.
func WithSchema(t testing.TB, databaseURL, schema string) string {
	t.Helper()
	parsed, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatalf("aksaratest: database URL: %v", err)
	}
	query := parsed.Query()
	query.Set("search_path", quoteIdentifier(schema))
	// Postgres clients decode %20 but not every one of them +.
	parsed.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	return parsed.String()
}
