package aksaratest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakePython makes a folder with a python3 that runs the given line of shell.
func fakePython(t *testing.T, line string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "python3"), []byte("#!/bin/sh\n"+line+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

func searchPath(folders ...string) string { return strings.Join(folders, string(os.PathListSeparator)) }

func TestFindPythonPassesOverThoseThatDoNotWork(t *testing.T) {
	t.Parallel()
	shim := fakePython(t, "echo no such version >&2; exit 127")
	good := fakePython(t, "echo 3.11.2")
	found, err := findPython(t.Context(), searchPath(t.TempDir(), shim, good))
	if err != nil {
		t.Fatal(err)
	}
	if want := (interpreter{filepath.Join(good, "python3"), "3.11.2\n"}); found != want {
		t.Errorf("found %+v, want %+v", found, want)
	}
}

func TestFindPythonNamesWhatToInstall(t *testing.T) {
	t.Parallel()
	shim := fakePython(t, "echo no such version >&2; exit 127")
	_, err := findPython(t.Context(), searchPath(t.TempDir(), shim))
	if err == nil {
		t.Fatal("found a Python where none works")
	}
	for _, want := range []string{"Python 3.11", "python3-venv", shim, "no such version"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}
