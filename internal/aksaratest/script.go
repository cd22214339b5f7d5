package aksaratest

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

//go:embed python/*.py
var scripts embed.FS

// scriptTime bounds a script that runs to its end by itself. It is meant for one that hangs, not one that works long.
const scriptTime = 10 * time.Minute

// newScript returns a command that runs one of our scripts, named without its ending, in a new folder that cleanup
// removes. The surroundings are the same everywhere: no variable of ours reaches Aksara, which reads its settings from them.
func newScript(ctx context.Context, name string) (command *exec.Cmd, cleanup func(), err error) {
	python, err := shared()
	if err != nil {
		return nil, nil, err
	}
	folder, err := os.MkdirTemp("", "aksaratest-")
	if err != nil {
		return nil, nil, err
	}
	cleanup = func() { os.RemoveAll(folder) }
	files, err := fs.Sub(scripts, "python")
	if err == nil {
		err = os.CopyFS(folder, files)
	}
	if err != nil {
		cleanup()
		return nil, nil, err
	}
	command = exec.CommandContext(ctx, python, "-X", "utf8", filepath.Join(folder, name+".py"))
	command.Dir = folder
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "TZ=UTC"}
	return command, cleanup, nil
}

// runScript runs a script to its end and decodes what it printed.
func runScript[Result any](ctx context.Context, name string, options any) (Result, error) {
	var result Result
	ctx, cancel := context.WithTimeoutCause(ctx, scriptTime, fmt.Errorf("took longer than %s", scriptTime))
	defer cancel()
	command, cleanup, err := newScript(ctx, name)
	if err != nil {
		return result, err
	}
	defer cleanup()
	input, err := json.Marshal(options)
	if err != nil {
		return result, err
	}
	command.Stdin = bytes.NewReader(append(input, '\n'))
	printed, err := output(command)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return result, fmt.Errorf("%s.py: %w", name, err)
	}
	if err := json.Unmarshal([]byte(printed), &result); err != nil {
		return result, fmt.Errorf("%s.py printed something else than its result: %w", name, err)
	}
	return result, nil
}

// mustRun is runScript for a test.
func mustRun[Result any](t testing.TB, name string, options any) Result {
	t.Helper()
	result, err := runScript[Result](t.Context(), name, options)
	if err != nil {
		t.Fatalf("aksaratest: %v", err)
	}
	return result
}
