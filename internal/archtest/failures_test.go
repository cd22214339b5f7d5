package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const failures = "../../docs/known-failures.md"

// reference is how a page names a test.
var reference = regexp.MustCompile("`([a-z0-9/]+)\\.(Test[A-Za-z0-9]+)`")

// Each test that a page names is there.
func TestNamedTestsAreThere(t *testing.T) {
	t.Parallel()
	all, named := packages(t), 0
	for path, text := range pages(t) {
		for _, test := range reference.FindAllStringSubmatch(text, -1) {
			named++
			if p, ok := all[test[1]]; !ok || !declares(t, p.Dir, test[2]) {
				t.Errorf("%s: there is no %s.%s", path, test[1], test[2])
			}
		}
	}
	if named == 0 {
		t.Error("no page names a test")
	}
}

// Each known failure names a test.
func TestKnownFailuresAreTested(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(failures)
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasPrefix(line, "| failure |") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 3 {
			t.Errorf("no row of three columns: %s", line)
			continue
		}
		named := reference.FindAllStringSubmatch(cells[2], -1)
		if len(named) == 0 || strings.Count(cells[2], "Test") != len(named) {
			t.Errorf("no tests, or not as `package.Name`, in: %s", line)
		}
	}
	if rows == 0 {
		t.Errorf("no table in %s", failures)
	}
}

// declares reports whether a package's tests have one of that name.
func declares(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
