package settings

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata and the table in docs/configuration.md anew")

const docsFile = "../../docs/configuration.md"

// TestVariablesAndTextsAgree wants one field for each variable, in the same order.
func TestVariablesAndTextsAgree(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, v := range Variables() {
		want = append(want, v.Name)
	}
	fields := reflect.TypeFor[texts]()
	for i := range fields.NumField() {
		got = append(got, fields.Field(i).Tag.Get("env"))
	}
	if !slices.Equal(got, want) {
		t.Errorf("fields\n%q\nvariables\n%q", got, want)
	}
}

// TestVariablesStay freezes names, types and defaults: users depend on them.
func TestVariablesStay(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	for _, v := range Variables() {
		fmt.Fprintf(&lines, "%s file=%t secret=%t default=%q note=%q type=%q\n", v.Name, v.File, v.Secret, v.Default, v.Note, v.Type())
	}
	compareFile(t, "testdata/variables.txt", lines.String())
}

// TestDocumentedVariables keeps the table of the documentation what the code says.
func TestDocumentedVariables(t *testing.T) {
	t.Parallel()
	const begin = "<!-- variables: generated from internal/settings by go test ./internal/settings -update -->\n"
	const end = "<!-- end of variables -->\n"
	before, rest, foundBegin := strings.Cut(readText(t, docsFile), begin)
	_, after, foundEnd := strings.Cut(rest, end)
	if !foundBegin || !foundEnd {
		t.Fatalf("%s lacks the marks %q and %q", docsFile, begin, end)
	}
	compareFile(t, docsFile, before+begin+table()+end+after)
}

func table() string {
	var out strings.Builder
	out.WriteString("| variable | type | default | meaning |\n| --- | --- | --- | --- |\n")
	for _, v := range Variables() {
		name, standard := v.Name, v.Note
		if v.File {
			name += " (F)"
		}
		if v.Default != "" {
			standard = "`" + v.Default + "`"
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", name, v.Type(), standard, v.Meaning)
	}
	return out.String()
}

// TestDocumentedExample wants the example of the documentation to work.
func TestDocumentedExample(t *testing.T) {
	t.Parallel()
	_, rest, _ := strings.Cut(readText(t, docsFile), "```sh\n")
	example, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatalf("%s has no example", docsFile)
	}
	f := files{"/run/secrets/database-password": "p", "/run/secrets/kafka-password": "q", "/etc/relay/tenants": "acme"}
	if _, err := Load(strings.Split(strings.TrimSpace(example), "\n"), f.read, host); err != nil {
		t.Error(err)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	s := mustLoad(t, with("RELAY_DATABASE_PASSWORD_FILE", "pw", "RELAY_TENANTS", "", "RELAY_TENANTS_FILE", "tenants", "RELAY_CLAIM_LEASE", "90s"),
		files{"pw": "hunter2", "tenants": "acme\n"})
	rows := Describe(s)
	got := map[string][2]string{}
	for i, v := range Variables() {
		if rows[i].Name != v.Name || rows[i].Type != v.Type() || rows[i].Meaning != v.Meaning {
			t.Errorf("row %d is of %s, want %s", i, rows[i].Name, v.Name)
		}
		got[v.Name] = [2]string{rows[i].Value, rows[i].From}
	}
	for name, want := range map[string][2]string{
		"RELAY_DATABASE_URL":        {"***", "RELAY_DATABASE_URL"},
		"RELAY_DATABASE_PASSWORD":   {"***", "RELAY_DATABASE_PASSWORD_FILE"},
		"RELAY_KAFKA_SASL_PASSWORD": {"", ""},
		"RELAY_TENANTS":             {`["acme"]`, "RELAY_TENANTS_FILE"},
		"RELAY_CLAIM_LEASE":         {"90s", "RELAY_CLAIM_LEASE"},
		"RELAY_RETRY_DELAY":         {"5s", ""},
		"RELAY_WORKER_ID":           {host, ""},
		"RELAY_INSTANCE":            {"3", ""},
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

func readText(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// compareFile wants the file to be what the code makes; with -update it makes it so.
func compareFile(t *testing.T, name, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got := readText(t, name); got != want {
		t.Errorf("%s is not what the code says. If the code is right, run: go test ./internal/settings -update", name)
	}
}
