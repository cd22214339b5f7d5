package aksaratest

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

//go:embed requirements.txt
var requirements string

const (
	// installTime bounds the making of the environment, and the waiting for another process that makes it.
	installTime = 5 * time.Minute
	// lockPause lies between two looks at a lock that another holds.
	lockPause = 50 * time.Millisecond
)

// shared is the path of the environment's interpreter. It is a package variable because looking for it takes a process of
// its own, which the tests of a package need not start each time; nothing is done until the first asks.
var shared = sync.OnceValues(install)

// install makes the Python environment unless it is there, and returns the path of its interpreter.
func install() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), installTime)
	defer cancel()
	base, err := findPython(ctx, os.Getenv("PATH"))
	if err != nil {
		return "", err
	}
	cache, err := cacheFolder()
	if err != nil {
		return "", err
	}
	key := sha256.Sum256([]byte(base.version + requirements))
	folder := filepath.Join(cache, fmt.Sprintf("%x", key[:8]))
	python := filepath.Join(folder, "bin", "python")
	return python, makeOnce(ctx, folder, func() error { return build(ctx, base, folder, python) })
}

// makeOnce calls build unless an earlier call, in this process or another, has made folder with success. Others that call
// it meanwhile wait. What a failed or killed build left is removed before the next.
func makeOnce(ctx context.Context, folder string, build func() error) error {
	unlock, err := lock(ctx, folder+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	complete := filepath.Join(folder, "complete")
	if _, err := os.Stat(complete); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := build(); err != nil {
		return err
	}
	return os.WriteFile(complete, nil, 0o644)
}

// build makes the environment in folder, its final place: its programs hold that path.
func build(ctx context.Context, base interpreter, folder, python string) error {
	if _, err := output(exec.CommandContext(ctx, base.path, "-m", "venv", folder)); err != nil {
		return fmt.Errorf("make a Python environment with %s: %w", base.path, err)
	}
	list := filepath.Join(folder, "requirements.txt")
	if err := os.WriteFile(list, []byte(requirements), 0o644); err != nil {
		return err
	}
	// Without dependencies of its own choice pip installs the list and nothing else; its check finds what is missing.
	for _, step := range [][]string{
		{"install", "--quiet", "--only-binary=:all:", "--no-deps", "--requirement", list},
		{"check"},
	} {
		arguments := append([]string{"-m", "pip", "--no-input", "--disable-pip-version-check"}, step...)
		if _, err := output(exec.CommandContext(ctx, python, arguments...)); err != nil {
			return fmt.Errorf("install the packages of requirements.txt (this takes a Python package index, "+
				"and pip's own settings apply): pip %s: %w", step[0], err)
		}
	}
	return nil
}

// cacheFolder returns the folder that holds the environments. The user database knows a home folder when HOME doesn't.
func cacheFolder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		current, err := user.Current()
		if err != nil {
			return "", fmt.Errorf("find a cache folder (set HOME or XDG_CACHE_HOME): %w", err)
		}
		cache = filepath.Join(current.HomeDir, ".cache")
	}
	folder := filepath.Join(cache, "outboxrelay", "python")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("make a cache folder (set HOME or XDG_CACHE_HOME to one that can be written): %w", err)
	}
	return folder, nil
}

// lock waits for the exclusive lock on the file at path, and holds it until unlock is called or the process ends.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	ticker := time.NewTicker(lockPause)
	defer ticker.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("wait for another process's lock on %s: %w (last try: %w)", path, context.Cause(ctx), err)
		}
	}
}
