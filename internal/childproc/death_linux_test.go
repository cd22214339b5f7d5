package childproc

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// ownerVariable makes the test program the owner of a child, for the test to kill.
const ownerVariable = "CHILDPROC_TEST_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(ownerVariable) != "" {
		if err := own(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// own starts a child in a temporary folder, prints both, and waits to be killed.
func own() error {
	temp, err := NewTempDir("childproc-test-", nil)
	if err != nil {
		return err
	}
	child, err := Start(Command{Path: "sleep", Args: []string{"600"}, Log: filepath.Join(temp.Path, "log"), Temp: temp})
	if err != nil {
		return err
	}
	fmt.Println(child.cmd.Process.Pid, temp.Path)
	select {}
}

func TestKilledOwnerLeavesNeitherChildNorFolder(t *testing.T) {
	t.Parallel()
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerVariable+"=1")
	owner.Stderr = os.Stderr
	output, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	var folder string
	if _, err := fmt.Fscanln(bufio.NewReader(output), &pid, &folder); err != nil {
		t.Fatalf("read the owner's line: %v", err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("child %d does not run: %v", pid, err)
	}

	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // "signal: killed"
	gone := func() error {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("child %d still there: %v", pid, err)
		}
		if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("folder %s still there: %v", folder, err)
		}
		return nil
	}
	for deadline := time.Now().Add(time.Minute); gone() != nil; {
		if time.Now().After(deadline) {
			t.Fatal(gone())
		}
		<-time.After(5 * time.Millisecond)
	}
}
