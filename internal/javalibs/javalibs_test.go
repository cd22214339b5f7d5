package javalibs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestMissingProgramsAreNamedWithTheirPackages(t *testing.T) {
	empty := t.TempDir()
	t.Setenv("PATH", empty)
	t.Setenv("JAVA_HOME", "")
	t.Setenv("XDG_CACHE_HOME", empty)
	t.Setenv("HOME", empty)

	if _, err := Java(); !errors.Is(err, ErrNoJava) || !strings.Contains(err.Error(), "default-jre-headless") {
		t.Errorf("Java without Java = %v", err)
	}
	_, err := Folder(t.Context(), "kafka-1", "")
	if !errors.Is(err, ErrNoMaven) || !strings.Contains(err.Error(), "apt-get install maven") || !strings.Contains(err.Error(), "kafka-1") {
		t.Errorf("Folder without Maven = %v", err)
	}
}

// fakeMaven counts its calls and makes one jar, in the folder that its last argument names.
const fakeMaven = `#!/bin/sh
echo call >> "$FAKE_MAVEN_CALLS"
for argument; do :; done
libs="${argument#-DoutputDirectory=}"
mkdir "$libs" && echo jar > "$libs/kafka.jar"
`

func TestJarsAreFetchedOnce(t *testing.T) {
	calls := useFakeMaven(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			libs, err := Folder(t.Context(), "kafka-1", "<project/>")
			if err != nil {
				t.Errorf("Folder: %v", err)
			}
			checkJars(t, libs)
		})
	}
	group.Wait()
	if content, err := os.ReadFile(calls); err != nil || string(content) != "call\n" {
		t.Errorf("Maven's calls: %q, %v, want one", content, err)
	}
}

// Fill does not know of other processes, so calling it at once is what two of them do.
func TestProcessesMayFetchAtOnce(t *testing.T) {
	useFakeMaven(t)
	libs := filepath.Join(t.TempDir(), "cache", "kafka")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if err := fill(t.Context(), libs, "<project/>"); err != nil {
				t.Errorf("fill: %v", err)
			}
			checkJars(t, libs)
		})
	}
	group.Wait()
	left, err := os.ReadDir(filepath.Dir(libs))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 {
		t.Errorf("cache holds %v, want the jars alone", left)
	}
}

// useFakeMaven puts fakeMaven on PATH, empties the cache, and returns the file that calls are written to.
func useFakeMaven(t *testing.T) (calls string) {
	t.Helper()
	root := t.TempDir()
	calls = filepath.Join(root, "calls")
	t.Setenv("FAKE_MAVEN_CALLS", calls)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(root, "cache"))
	t.Setenv("HOME", root)
	t.Setenv("PATH", root+":"+os.Getenv("PATH"))
	if err := os.WriteFile(filepath.Join(root, "mvn"), []byte(fakeMaven), 0o755); err != nil {
		t.Fatal(err)
	}
	return calls
}

func checkJars(t *testing.T, libs string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(libs, "kafka.jar")); err != nil {
		t.Errorf("incomplete folder: %v", err)
	}
}
