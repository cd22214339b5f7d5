package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"outboxrelay/internal/childproc"
	"outboxrelay/internal/waittest"
)

// limit is how long a test waits for a demonstration that takes a quarter of a minute.
const limit = 2 * time.Minute

// running is a demonstration in a process of its own.
type running struct {
	cmd     *exec.Cmd
	output  *bufio.Reader
	temp    string // its folder for temporary files
	started time.Time
}

// build builds both programs and gives the folder that they are in.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	output, err := exec.Command("go", "build", "-o", dir, "outboxrelay/cmd/demo", "outboxrelay/cmd/relay").CombinedOutput()
	if err != nil {
		t.Fatalf("build the programs: %v\n%s", err, output)
	}
	return dir
}

// start starts a demonstration that is killed when the test ends, or takes too long.
func start(t *testing.T, built string, args ...string) *running {
	t.Helper()
	temp, err := childproc.NewTempDir("demo-test-", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { temp.Remove() })
	if err := os.Chmod(temp.Path, 0o777); err != nil { // PostgreSQL runs as another user when we are root
		t.Fatal(err)
	}
	d := &running{temp: temp.Path, started: time.Now()}
	d.cmd = exec.Command(filepath.Join(built, "demo"), append(args, "-relay", "./relay")...)
	d.cmd.Dir = built
	d.cmd.Env = append(os.Environ(), "TMPDIR="+temp.Path)
	output, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	d.cmd.Stdout, d.cmd.Stderr = w, w
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	d.output = bufio.NewReader(output)
	overdue := time.AfterFunc(limit, func() { d.cmd.Process.Kill() })
	t.Cleanup(func() {
		overdue.Stop()
		d.cmd.Process.Kill()
		d.cmd.Wait() // an error if it was waited for already
		output.Close()
	})
	return d
}

// readUntil reads on to the first line that holds text.
func (d *running) readUntil(t *testing.T, text string) string {
	t.Helper()
	var before strings.Builder
	for {
		line, err := d.output.ReadString('\n')
		if strings.Contains(line, text) {
			return line
		}
		before.WriteString(line)
		if err != nil {
			t.Fatalf("the output ended without %q:\n%s", text, before.String())
		}
	}
}

func (d *running) readAll(t *testing.T) string {
	t.Helper()
	rest, err := io.ReadAll(d.output)
	if err != nil {
		t.Fatal(err)
	}
	return string(rest)
}

// status waits for its end.
func (d *running) status() int {
	d.cmd.Wait() // what counts is the status
	return d.cmd.ProcessState.ExitCode()
}

// leavesNothing waits for its folders and processes to be gone. Only one that was killed needs the waiting.
func (d *running) leavesNothing(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		if left := append(d.folders(t), d.processes()...); len(left) > 0 {
			return fmt.Errorf("left behind: %q", left)
		}
		return nil
	})
}

// eventually waits until a condition holds, which err is nil for.
func eventually(t *testing.T, condition func() error) {
	t.Helper()
	waittest.Until(t, 30*time.Second, "a condition", condition)
}

func (d *running) folders(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(d.temp)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// processes are those that work in its folder, where the system can tell.
func (d *running) processes() (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, cwd := range all {
		if dir, err := os.Readlink(cwd); err == nil && strings.HasPrefix(dir, d.temp) {
			found = append(found, cwd+" in "+dir)
		}
	}
	return found
}
