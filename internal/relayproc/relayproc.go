// Package relayproc runs the relay program in tests as users run it: built once with the race detector, or without it where
// memory is limited, in an environment that the test gives it, on an outbox and a topic of the test's own. It also judges what
// came out of it.
package relayproc

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

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
	return start(t, env, exec.Command(Program(t), "run"))
}

// StartLimited is Start for a relay without the race detector, which may have so many KiB of memory that it can write to. As
// under a container's limit, it ends when it needs more.
func StartLimited(t testing.TB, kib int, env map[string]string) *Process {
	t.Helper()
	path, err := plain()
	if err != nil {
		t.Fatal(err)
	}
	return start(t, env, exec.Command("sh", "-c", `ulimit -d "$1" && exec "$2" run`, "sh", strconv.Itoa(kib), path))
}

func start(t testing.TB, env map[string]string, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{t: t, Log: &Log{}, cmd: cmd, exited: make(chan struct{})}
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

// Ended reports whether the process has ended, and not only been asked to.
func (p *Process) Ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
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
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, Program(t), args...)
	cmd.Env = environment(env)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("relay %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), log.String(), cmd.ProcessState.ExitCode()
}
