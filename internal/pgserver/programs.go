package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"outboxrelay/internal/childproc"
)

// ErrNotInstalled means that this machine has no programs of a PostgreSQL server.
var ErrNotInstalled = errors.New("no PostgreSQL server is installed here: install one (Debian and Ubuntu: apt-get install postgresql)")

// usualPlaces are the folders of server programs that are often not on PATH, by system.
var usualPlaces = []string{
	"/usr/lib/postgresql/*/bin",                          // Debian
	"/usr/pgsql-*/bin",                                   // PostgreSQL's own packages for Red Hat
	"/usr/libexec/postgresql*",                           // Alpine
	"/opt/homebrew/opt/postgresql*/bin",                  // Homebrew on Apple's processors
	"/usr/local/opt/postgresql*/bin",                     // Homebrew on Intel's
	"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",     // Homebrew on Linux
	"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
	"/Library/PostgreSQL/*/bin",                          // the installer for macOS
	"/usr/local/pgsql/bin",                               // built from source
}

// findPrograms returns the folder of an installed server's programs, or of downloaded ones.
func findPrograms(ctx context.Context, download bool, user *childproc.User) (string, error) {
	if bin, found := installed(exec.LookPath, usualPlaces); found {
		return bin, nil
	}
	if !download {
		return "", ErrNotInstalled
	}
	bin, err := downloaded(ctx, user)
	if err != nil {
		return "", fmt.Errorf("%w; downloading one failed: %w", ErrNotInstalled, err)
	}
	return bin, nil
}

// installed looks on PATH first, then takes the newest version of places.
func installed(lookPath func(string) (string, error), places []string) (bin string, found bool) {
	if initdb, err := lookPath("initdb"); err == nil {
		// A link on PATH leads to the folder where the other programs are.
		if initdb, err = filepath.EvalSymlinks(initdb); err == nil && complete(filepath.Dir(initdb)) {
			return filepath.Dir(initdb), true
		}
	}
	var candidates []string
	for _, place := range places {
		matches, _ := filepath.Glob(place)
		candidates = append(candidates, slices.DeleteFunc(matches, func(bin string) bool { return !complete(bin) })...)
	}
	if len(candidates) == 0 {
		return "", false
	}
	return slices.MaxFunc(candidates, func(a, b string) int { return version(a) - version(b) }), true
}

// complete tells whether a folder has all the programs that a server needs.
func complete(bin string) bool {
	for _, program := range []string{"initdb", "postgres"} {
		if info, err := os.Stat(filepath.Join(bin, program)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}

// version returns the last number in a path such as /usr/lib/postgresql/17/bin, or 0.
func version(path string) int {
	numbers := regexp.MustCompile(`[0-9]+`).FindAllString(path, -1)
	if len(numbers) == 0 {
		return 0
	}
	number, _ := strconv.Atoi(numbers[len(numbers)-1])
	return number
}
