// Package childproc runs the servers that tests, benchmarks and the demonstration need as child processes: PostgreSQL and
// Kafka, started from their own programs on this machine. A child cannot outlive us (on Linux; elsewhere call Stop), and a
// temporary folder goes with its owner, even when that is killed.
package childproc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// WaitFunction is the function in which one goroutine stays for as long as a child runs. Tests that look for leaked
// goroutines while a shared server runs ignore it by this name.
const WaitFunction = "outboxrelay/internal/childproc.(*Process).wait"

// logTail is how many bytes of a child's output go into an error: enough for a stack trace, little enough to read.
const logTail = 3000

// Command is a program to run.
type Command struct {
	Path string   // the program, absolute or found on PATH
	Args []string // without the program's name
	Dir  string   // working folder, which User must be able to enter
	Env  []string // the whole environment as NAME=VALUE; nil means ours
	Log  string   // file that standard output and standard error are appended to
	User *User    // who runs it; nil means us

	// Temp is the temporary folder that the child works in, or nil. Its guard is kept from acting for as long as the child
	// runs, even when the caller has forgotten both.
	Temp *TempDir
	// DeathSignal is what Linux sends the child when we die: syscall.SIGKILL if 0.
	DeathSignal syscall.Signal
}

// Process is a child that was started. Its methods may be called concurrently.
type Process struct {
	command Command
	cmd     *exec.Cmd
	done    chan struct{}
	err     error // set before done is closed
}

// Start starts command in a process group of its own and returns without waiting for it.
func Start(command Command) (*Process, error) {
	log, err := os.OpenFile(command.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer log.Close()

	cmd := exec.Command(command.Path, command.Args...)
	cmd.Dir, cmd.Env = command.Dir, command.Env
	cmd.Stdout, cmd.Stderr = log, log
	if cmd.SysProcAttr, err = attributes(command); err != nil {
		return nil, err
	}

	p := &Process{command: command, cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go p.wait(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(command.Path), err)
	}
	return p, nil
}

// wait starts the child and waits for its end on one thread: Linux sends the death signal when the thread that started the
// child ends, which for a thread of Go's may be long before the process does.
func (p *Process) wait(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	err := p.cmd.Start()
	started <- err
	if err == nil {
		p.err = p.cmd.Wait()
	}
}

// Run starts command and waits for it. An error holds the end of its output. When ctx ends first the child is killed.
func Run(ctx context.Context, command Command) error {
	p, err := Start(command)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
		if p.err != nil {
			return p.Failure(p.err)
		}
		return nil
	case <-ctx.Done():
		p.Kill()
		return p.Failure(context.Cause(ctx))
	}
}

// PID is the child's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Failure wraps err with the program's name and the end of its output.
func (p *Process) Failure(err error) error {
	return fmt.Errorf("%s: %w; its last output:\n%s", filepath.Base(p.command.Path), err, tail(p.command.Log))
}

// AwaitReady calls ready every few milliseconds until it returns nil. It fails with the end of the child's output when the
// child ends first, or when ctx does.
func (p *Process) AwaitReady(ctx context.Context, ready func(context.Context) error) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.Failure(errors.New("ended while starting"))
		case <-ctx.Done():
			return p.Failure(fmt.Errorf("not ready in time: %w (last try: %w)", context.Cause(ctx), err))
		case <-ticker.C:
		}
	}
}

// Stop sends the child signal, waits up to grace for its end, and kills it after that. It returns nil if the child
// ended by itself, also when that was earlier.
func (p *Process) Stop(signal os.Signal, grace time.Duration) error {
	if err := p.Signal(signal); err != nil {
		p.Kill()
		return nil
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		p.Kill()
		return p.Failure(fmt.Errorf("did not end within %s of %s and was killed", grace, signal))
	}
}

// Signal sends the child a signal. An error means that it has ended, or that this system has no such signal.
func (p *Process) Signal(signal os.Signal) error { return p.cmd.Process.Signal(signal) }

// Kill kills the child (SIGKILL) and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Environment returns our environment without the variables whose names begin with one of prefixes.
func Environment(prefixes ...string) []string {
	var kept []string
next:
	for _, variable := range os.Environ() {
		for _, prefix := range prefixes {
			if strings.HasPrefix(variable, prefix) {
				continue next
			}
		}
		kept = append(kept, variable)
	}
	return kept
}

// tail returns the end of the file at path, from the start of a line.
func tail(path string) []byte {
	content, err := os.ReadFile(path)
	if err != nil {
		return []byte("(" + err.Error() + ")")
	}
	if cut := len(content) - logTail; cut > 0 {
		content = content[cut:]
		if _, after, found := bytes.Cut(content, []byte("\n")); found {
			content = after
		}
	}
	return bytes.TrimSpace(content)
}
