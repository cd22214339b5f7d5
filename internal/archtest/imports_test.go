package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "outboxrelay"

// listed is what go list says of a package.
type listed struct {
	ImportPath string
	Dir        string
	Imports    []string
	Deps       []string
	GoFiles    []string
}

// packages gives the module's packages by their path below the module.
func packages(t *testing.T) map[string]listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Imports,Deps,GoFiles", module+"/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string]listed{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(p.ImportPath, module+"/")] = p
	}
}

// Arrows point one way: each package may import these of the module and no others.
func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	allowed := map[string][]string{
		"envelope":          {},
		"relay":             {"envelope"},
		"migrations":        {},
		"store":             {"envelope", "relay", "migrations"},
		"kafkasink":         {"envelope", "relay"},
		"verify":            {"envelope"},
		"inbox":             {"envelope"},
		"internal/settings": {"envelope"},
		"internal/monitor":  {"envelope", "relay"},
		"internal/sample":   {"envelope"},
		"cmd/relay":         {"envelope", "relay", "store", "kafkasink", "migrations", "verify", "internal/settings", "internal/monitor", "internal/terminal"},
		// What a consumer outside of this module could import.
		"examples/consumer-go": {"envelope", "inbox"},
		"cmd/writer":           {"envelope", "internal/sample"},
		// It runs the relay as a program, as a user would.
		"cmd/demo": {"envelope", "migrations", "internal/sample", "internal/pgserver", "internal/childproc", "internal/terminal"},
	}
	all := packages(t)
	for name, may := range allowed {
		p, ok := all[name]
		if !ok {
			t.Errorf("there is no package %s any more: mend this test", name)
			continue
		}
		for _, path := range p.Imports {
			ours, ok := strings.CutPrefix(path, module+"/")
			if ok && !slices.Contains(may, ours) {
				t.Errorf("%s imports %s; it may import only %v", name, ours, may)
			}
		}
	}
}

// The core knows no driver, and the leaf knows neither.
func TestDriversStayInAdapters(t *testing.T) {
	t.Parallel()
	all := packages(t)
	for _, name := range []string{"envelope", "relay"} {
		for _, path := range all[name].Imports {
			for _, driver := range []string{"github.com/jackc/pgx", "github.com/twmb/franz-go", "github.com/rs/zerolog", "github.com/prometheus"} {
				if strings.HasPrefix(path, driver) {
					t.Errorf("%s imports %s: only adapters know drivers", name, path)
				}
			}
		}
	}
}

// A consumer's library ties nobody to a Kafka client, nor to what only the relay needs.
func TestTheInboxNeedsOnlyTheDatabase(t *testing.T) {
	t.Parallel()
	for _, path := range packages(t)["inbox"].Deps {
		first, _, _ := strings.Cut(path, "/")
		if !strings.Contains(first, ".") || strings.HasPrefix(path, "golang.org/x/") {
			continue // the standard library, and what pgx needs of it
		}
		if !strings.HasPrefix(path, "github.com/jackc/") && path != "github.com/google/uuid" {
			t.Errorf("the inbox needs %s", path)
		}
	}
}

// Nothing that is for tests, or for the demo, is linked into the program.
func TestTheProgramHoldsNoTestCode(t *testing.T) {
	t.Parallel()
	banned := map[string]string{
		"text/template":                              "it calls methods by name, so the linker keeps them all: 3 MB",
		"testing":                                    "it registers flags and is no part of a program",
		"github.com/twmb/franz-go/pkg/kfake":         "the fake broker is for the demo and for tests",
		"github.com/testcontainers":                  "test servers",
		"github.com/stretchr/testify":                "assertions of testcontainers",
		"github.com/fergusstrange/embedded-postgres": "the demo's database",
		"github.com/cloudevents":                     "a second opinion for tests",
		"github.com/chromedp":                        "drives a browser for tests",
		"github.com/Shopify/toxiproxy":               "tests and the chaos program",
		"go.uber.org/goleak":                         "tests",
		"github.com/santhosh-tekuri/jsonschema":      "tests of the schemas",
		module + "/schemas":                          "for tools and tests",
		module + "/inbox":                            "for consumers",
		"pgregory.net/rapid":                         "tests",
		module + "/internal/pgtest":                  "test servers",
		module + "/internal/kafkatest":               "test servers",
		module + "/internal/aksaratest":              "test servers",
		module + "/internal/sample":                  "an application's writes; the relay never inserts",
	}
	alone := map[string]bool{"testing": true, "text/template": true} // what lies below is no matter
	for _, path := range packages(t)["cmd/relay"].Deps {
		for ban, reason := range banned {
			if path == ban || strings.HasPrefix(path, ban+"/") && !alone[ban] {
				t.Errorf("the program holds %s: %s", path, reason)
			}
		}
	}
}

// Only the programs read the environment.
func TestOnlyProgramsReadTheEnvironment(t *testing.T) {
	t.Parallel()
	for name, p := range packages(t) {
		if strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "internal/") || strings.HasPrefix(name, "examples/") || name == "bench" {
			continue // an example is a program; the test servers take addresses from it, and settings is handed it
		}
		for _, file := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range []string{"os.Getenv", "os.LookupEnv", "os.Environ"} {
				if strings.Contains(string(text), call) {
					t.Errorf("%s/%s calls %s", name, file, call)
				}
			}
		}
	}
}

// The statement that takes an event stands in the examples of other languages too, and must be the same.
func TestExamplesTakeAsTheInboxDoes(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		text, err := os.ReadFile(filepath.Join("../..", path))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	// plain leaves the statement, with one mark for all kinds of parameters and blanks.
	plain := func(sql string) string {
		_, sql, _ = strings.Cut(sql, "insert into relay_inbox")
		sql, _, _ = strings.Cut(sql, "::bigint")
		return strings.Join(strings.Fields(regexp.MustCompile(`\$[0-9]|%\([a-z]+\)s|\?`).ReplaceAllString(sql, "?")), " ")
	}
	want := plain(read("inbox/sql/take.sql"))
	for _, path := range []string{"examples/consumer-python/consumer.py", "examples/consumer-java/Consumer.java"} {
		if got := plain(read(path)); got != want {
			t.Errorf("%s takes by\n%s\nand the inbox by\n%s", path, got, want)
		}
	}
}
