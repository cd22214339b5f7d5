// Package relayproc runs the relay program in tests as users run it: built once with the race detector, in an environment
// that the test gives it, on an outbox and a topic of the test's own. It also judges what came out of it.
package relayproc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program is the relay's path, built once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "relay-program-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "relay")
	out, err := exec.Command("go", "build", "-race", "-o", path, "outboxrelay/cmd/relay").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build relay: %w\n%s", err, out)
	}
	return path, nil
})

// Main runs a package's tests and then removes the program. It is for TestMain.
func Main(m *testing.M) (code int) {
	code = m.Run()
	if path, err := program(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	return code
}

// Process is a relay that runs.
type Process struct {
	Log *Log // what it has written

	t      testing.TB
	cmd    *exec.Cmd
	exited chan struct{}
}

// Start runs "relay run" with the environment and nothing else in it. It is killed when the test ends, unless it has
// ended by then.
func Start(t testing.TB, env map[string]string) *Process {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{t: t, Log: &Log{}, exited: make(chan struct{})}
	p.cmd = exec.Command(path, "run")
	p.cmd.Env = environment(env)
	p.cmd.Stderr, p.cmd.Stdout = p.Log, p.Log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // ExitCode tells how it ended
		close(p.exited)
	}()
	t.Cleanup(p.cleanUp)
	return p
}

func (p *Process) cleanUp() {
	p.Kill()
	if p.t.Failed() {
		p.t.Logf("relay's log:\n%s", p.Log)
	}
	if strings.Contains(p.Log.String(), "DATA RACE") {
		p.t.Error("the race detector found a race in the relay")
	}
}

func environment(env map[string]string) []string {
	list := []string{"HOME=/nonexistent"}
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

// Kill ends the process as a crash would.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // an error says that it has ended
	<-p.exited
}

// Terminate asks the process to end. An error says that it has ended.
func (p *Process) Terminate() error { return p.cmd.Process.Signal(syscall.SIGTERM) }

// Exited waits for the process to end within limit, and gives its status.
func (p *Process) Exited(limit time.Duration) (status int) {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(limit):
		p.t.Fatalf("relay has not ended in %s", limit)
	}
	return p.cmd.ProcessState.ExitCode()
}

// Stop asks the process to end, waits for that and gives its status.
func (p *Process) Stop() (status int) {
	p.t.Helper()
	if err := p.Terminate(); err != nil {
		p.t.Fatalf("relay has ended by itself: %v\n%s", err, p.Log)
	}
	return p.Exited(Patience)
}

// Command runs one of the program's commands to its end.
func Command(t testing.TB, env map[string]string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = environment(env)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("relay %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), log.String(), cmd.ProcessState.ExitCode()
}
