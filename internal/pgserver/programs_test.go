package pgserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestInstalledTakesTheNewestCompleteVersion(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	programs(t, filepath.Join(root, "9", "bin"), "initdb", "postgres")
	want := programs(t, filepath.Join(root, "15", "bin"), "initdb", "postgres")
	programs(t, filepath.Join(root, "18", "bin"), "psql") // a client alone
	places := []string{filepath.Join(root, "*", "bin")}

	bin, found := installed(nowhere, places)
	if !found || bin != want {
		t.Errorf("installed = %q, %t, want %q", bin, found, want)
	}
	if bin, found := installed(nowhere, nil); found {
		t.Errorf("installed = %q, want nothing found in no place", bin)
	}
}

func TestInstalledPrefersThePathAndFollowsItsLink(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	want := programs(t, filepath.Join(root, "14"), "initdb", "postgres")
	programs(t, filepath.Join(root, "18"), "initdb", "postgres")
	link := filepath.Join(root, "initdb")
	if err := os.Symlink(filepath.Join(want, "initdb"), link); err != nil {
		t.Fatal(err)
	}
	onPath := func(string) (string, error) { return link, nil }

	bin, found := installed(onPath, []string{filepath.Join(root, "*")})
	if !found || bin != want {
		t.Errorf("installed = %q, %t, want the link's target %q", bin, found, want)
	}
}

func TestErrNotInstalledNamesThePackage(t *testing.T) {
	t.Parallel()
	if message := ErrNotInstalled.Error(); !strings.Contains(message, "apt-get install postgresql") {
		t.Errorf("ErrNotInstalled = %q, want it to name the package", message)
	}
}

func nowhere(program string) (string, error) {
	return "", &exec.Error{Name: program, Err: exec.ErrNotFound}
}

// programs makes a folder with empty files of these names.
func programs(t *testing.T, bin string, names ...string) string {
	t.Helper()
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(bin, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}
