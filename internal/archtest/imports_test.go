package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
		"internal/settings": {"envelope"},
		"internal/monitor":  {"relay"},
		"internal/sample":   {"envelope"},
		"cmd/relay":         {"envelope", "relay", "store", "kafkasink", "migrations", "verify", "internal/settings", "internal/monitor"},
		"cmd/writer":        {"envelope", "internal/sample"},
		// It runs the relay as a program, as a user would.
		"cmd/demo": {"envelope", "migrations", "internal/sample", "internal/pgserver", "internal/childproc"},
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
		"github.com/Shopify/toxiproxy":               "tests and the chaos program",
		"go.uber.org/goleak":                         "tests",
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
		if strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "internal/") || name == "bench" {
			continue // the test servers take addresses from it, and settings is handed it
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
