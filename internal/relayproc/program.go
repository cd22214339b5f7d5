package relayproc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Builds of the relay, each made when it is first used, in a folder of their own.
var (
	folder = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "relay-program-") })
	raced  = sync.OnceValues(func() (string, error) { return build("CGO_ENABLED=1", "raced", "-race") })
	plain  = sync.OnceValues(func() (string, error) { return build("CGO_ENABLED=0", "plain") })
)

// Program is the path of the relay's program, built with the race detector.
func Program(t testing.TB) string {
	t.Helper()
	path, err := raced()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func build(variable, name string, flags ...string) (path string, err error) {
	dir, err := folder()
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, name)
	cmd := exec.Command("go", append(append([]string{"build"}, flags...), "-o", path, "outboxrelay/cmd/relay")...)
	cmd.Env = append(os.Environ(), variable)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build relay: %w\n%s", err, out)
	}
	return path, nil
}

// Main runs a package's tests and then removes the programs. It is for TestMain.
func Main(m *testing.M) (code int) {
	code = m.Run()
	if dir, err := folder(); err == nil {
		_ = os.RemoveAll(dir)
	}
	return code
}
