package aksaratest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// probe is a Python program that fails unless it runs in an interpreter that can make our environment.
const probe = `
import sys
if sys.version_info < (3, 11):
    sys.exit("is too old: Python " + sys.version.split()[0])
try:
    import ensurepip, venv
except ImportError:
    sys.exit("has no venv module with pip")
print(sys.executable, sys.version)
`

// interpreter is a Python that can make an environment.
type interpreter struct {
	path    string
	version string // what its environments depend on: another version needs another environment
}

// findPython returns the first suitable python3 in the folders of searchPath, a list like PATH. It runs each one, since a
// version manager may have put programs there that end in an error.
func findPython(ctx context.Context, searchPath string) (interpreter, error) {
	var refused []string
	for _, name := range []string{"python3", "python3.14", "python3.13", "python3.12", "python3.11"} {
		for _, folder := range filepath.SplitList(searchPath) {
			path, err := exec.LookPath(filepath.Join(folder, name))
			if err != nil {
				continue
			}
			version, err := output(exec.CommandContext(ctx, path, "-c", probe))
			if err == nil {
				return interpreter{path, version}, nil
			}
			refused = append(refused, fmt.Sprintf("\n%s: %v", path, err))
		}
	}
	return interpreter{}, fmt.Errorf("no Python 3.11 or later with its venv module is on PATH; "+
		"install one (Debian: the packages python3 and python3-venv)%s", strings.Join(refused, ""))
}

// output runs command and returns its standard output; an error holds what it wrote to standard error.
func output(command *exec.Cmd) (string, error) {
	stdout, err := command.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%w: %s", err, lastLines(exit.Stderr))
	}
	return string(stdout), err
}

// lastLines returns the end of a program's messages, which in Python is where the error stands.
func lastLines(text []byte) string {
	const most = 3000
	return strings.TrimSpace(string(text[max(0, len(text)-most):]))
}
