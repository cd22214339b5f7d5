package childproc

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTempDirIsThereUntilRemoved(t *testing.T) {
	t.Parallel()
	temp, err := NewTempDir("childproc-test-", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(temp.Path, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := temp.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(temp.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder after Remove: %v, want it gone", err)
	}
}

func TestTempDirIsMadeInTheFirstParentThatTakesIt(t *testing.T) {
	t.Parallel()
	none, wanted := filepath.Join(t.TempDir(), "none"), t.TempDir()
	temp, err := NewTempDir("childproc-test-", nil, none, wanted, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if got := filepath.Dir(temp.Path); got != wanted {
		t.Errorf("made in %s, want %s", got, wanted)
	}
	if err := temp.Remove(); err != nil {
		t.Fatal(err)
	}
}

func TestCanEnterNamesTheClosedFolder(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(t.TempDir(), "closed")
	inner := filepath.Join(closed, "inner")
	if err := os.MkdirAll(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	var ourselves *User
	if err := ourselves.CanEnter(inner); err != nil {
		t.Errorf("CanEnter as ourselves = %v", err)
	}
	other := &User{Name: "somebody"}
	if err := other.CanEnter(inner); err == nil || !strings.Contains(err.Error(), "enter "+closed+":") {
		t.Errorf("CanEnter = %v, want it to name %s", err, closed)
	}
	if err := other.CanEnter("/"); err != nil {
		t.Errorf("CanEnter of the root folder = %v", err)
	}
}
