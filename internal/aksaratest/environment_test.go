package aksaratest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestInstallGivesAnInterpreterThatImportsEverything(t *testing.T) {
	t.Parallel()
	python := Install(t)
	const program = "import aksara, cloudevents, confluent_kafka"
	if _, err := output(exec.CommandContext(t.Context(), python, "-c", program)); err != nil {
		t.Fatal(err)
	}
}

func TestMakeOnceBuildsOnceForAllCallers(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "made")
	var builds atomic.Int32
	var callers sync.WaitGroup
	for range 10 {
		callers.Go(func() {
			err := makeOnce(t.Context(), folder, func() error {
				builds.Add(1)
				return os.Mkdir(folder, 0o755)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if n := builds.Load(); n != 1 {
		t.Errorf("built %d times, want once", n)
	}
}

func TestMakeOnceStartsAfreshAfterAFailure(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "made")
	leftover := filepath.Join(folder, "half")
	broken := errors.New("broken")
	err := makeOnce(t.Context(), folder, func() error {
		if err := os.MkdirAll(leftover, 0o755); err != nil {
			t.Error(err)
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Fatalf("got %v, want the build's error", err)
	}
	if err := makeOnce(t.Context(), folder, func() error { return os.Mkdir(folder, 0o755) }); err != nil {
		t.Fatalf("the second build failed: %v", err)
	}
	if _, err := os.Stat(leftover); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what the failed build left is still there: %v", err)
	}
}
