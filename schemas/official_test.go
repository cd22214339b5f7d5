package schemas_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// specs is the npm package with AsyncAPI's own schemas. Nothing else has them in a form that a package manager fetches.
const (
	specs       = "@asyncapi/specs@6.11.1"
	specsFile   = "asyncapi-specs-6.11.1.tgz" // what npm calls it
	specsSchema = "package/schemas/3.0.0.json"
)

// officialSchema is AsyncAPI's schema of its documents, fetched by npm once for a user.
func officialSchema(t *testing.T) []byte {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cache = filepath.Join(cache, "outboxrelay")
	kept := filepath.Join(cache, specsFile)
	if _, err := os.Stat(kept); errors.Is(err, os.ErrNotExist) {
		fetch(t, cache, kept)
	}
	file, err := os.Open(kept)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if err != nil {
			t.Fatalf("look for %s in %s: %v", specsSchema, specs, err)
		}
		if header.Name == specsSchema {
			text, err := io.ReadAll(files)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
	}
}

// fetch has npm put the package into a folder of its own first: others may fetch it at the same time.
func fetch(t *testing.T, cache, kept string) {
	t.Helper()
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	work, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(work)
	cmd := exec.CommandContext(t.Context(), "npm", "pack", "--silent", "--pack-destination", work, specs)
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("fetch %s with npm (Debian: apt-get install npm): %v\n%s", specs, err, out)
	}
	if err := os.Rename(filepath.Join(work, specsFile), kept); err != nil {
		t.Fatal(err)
	}
}
