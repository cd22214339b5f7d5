package childproc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// guardScript removes the folder $0 once its input ends. A terminal's Ctrl-C, which reaches it too, must not end it early.
// A server that is being killed may still write, so it tries again.
const guardScript = `trap '' INT TERM HUP; cat >/dev/null; for try in 1 2 3 4 5; do rm -rf -- "$0" && exit; sleep 1; done`

// TempDir is a temporary folder with a guard: a shell that removes the folder when we end in any way, kill -9 included, and
// when nothing in the program refers to the TempDir any more.
type TempDir struct {
	Path  string
	guard *exec.Cmd
	life  *os.File // the guard reads the other end until we close this one, or die
}

// NewTempDir makes a temporary folder that user owns and can reach, in the first of some parents, or else of the usual ones, in which
// that is possible.
func NewTempDir(pattern string, user *User, parents ...string) (*TempDir, error) {
	var refused []error
	for _, parent := range append(parents, os.TempDir(), "/tmp", "/var/tmp") {
		if err := user.CanEnter(parent); err != nil {
			refused = append(refused, err)
			continue
		}
		path, err := os.MkdirTemp(parent, pattern)
		if err != nil {
			refused = append(refused, err)
			continue
		}
		return guarded(path, user)
	}
	return nil, errors.Join(refused...)
}

func guarded(path string, user *User) (*TempDir, error) {
	input, life, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	defer input.Close()
	guard := exec.Command("sh", "-c", guardScript, path)
	guard.Stdin = input
	if err := errors.Join(user.Own(path), guard.Start()); err != nil {
		return nil, errors.Join(fmt.Errorf("temporary folder: %w", err), life.Close(), os.RemoveAll(path))
	}
	return &TempDir{Path: path, guard: guard, life: life}, nil
}

// Remove removes the folder. Call it once.
func (d *TempDir) Remove() error {
	d.life.Close()
	// How the guard fared does not matter: RemoveAll tells whether the folder is gone.
	_ = d.guard.Wait()
	return os.RemoveAll(d.Path)
}
