package childproc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRunReportsFailureWithTheEndOfTheOutput(t *testing.T) {
	t.Parallel()
	err := Run(t.Context(), shell(t, `for n in $(seq 2000); do echo line $n; done; echo the reason >&2; exit 3`))
	if err == nil {
		t.Fatal("Run of a failing command succeeded")
	}
	message := err.Error()
	if !strings.HasSuffix(message, "the reason") || !strings.Contains(message, "exit status 3") {
		t.Errorf("error lacks the status or the last line: %s", message)
	}
	if len(message) > logTail+200 {
		t.Errorf("error has %d bytes, want about %d at most", len(message), logTail)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	stop := errors.New("stopped on purpose")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if err := Run(ctx, shell(t, "exec sleep 600")); !errors.Is(err, stop) {
		t.Errorf("Run = %v, want the context's cause", err)
	}
}

func TestStopSendsTheSignalAndKillsAfterTheGrace(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script string
		grace  time.Duration
		fails  bool
	}{
		"orderly":  {"trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done", time.Minute, false},
		"stubborn": {"trap '' TERM; echo ready; while :; do sleep 0.01; done", 50 * time.Millisecond, true},
		"ended":    {"echo ready", time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := shell(t, test.script)
			process := start(t, command)
			await(t, command.Log, "ready")
			if err := process.Stop(syscall.SIGTERM, test.grace); (err != nil) != test.fails {
				t.Errorf("Stop = %v, want an error: %t", err, test.fails)
			}
			if err := process.Stop(syscall.SIGTERM, test.grace); err != nil {
				t.Errorf("second Stop = %v", err)
			}
		})
	}
}

func TestAwaitReady(t *testing.T) {
	t.Parallel()
	notYet := errors.New("not yet")
	never := func(context.Context) error { return notYet }

	if err := start(t, shell(t, "echo its words")).AwaitReady(t.Context(), never); err == nil || !strings.Contains(err.Error(), "its words") {
		t.Errorf("AwaitReady of a child that ended = %v, want its output", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := start(t, shell(t, "exec sleep 60")).AwaitReady(ctx, never)
	if !errors.Is(err, notYet) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("AwaitReady = %v, want both the deadline and the last try", err)
	}
}

func TestEnvironmentLeavesOutPrefixes(t *testing.T) {
	t.Setenv("CHILDPROC_TEST", "1")
	if got := strings.Join(Environment(), "\n"); !strings.Contains(got, "CHILDPROC_TEST=1") {
		t.Error("Environment() lacks a variable of ours")
	}
	if got := strings.Join(Environment("NONE_", "CHILDPROC_"), "\n"); strings.Contains(got, "CHILDPROC_TEST") {
		t.Error("Environment() has a variable that was to be left out")
	}
}

func TestWaitFunctionIsWhereTheGoroutineStays(t *testing.T) {
	t.Parallel()
	start(t, shell(t, "exec sleep 60"))
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	if !strings.Contains(string(stacks), WaitFunction+"(") {
		t.Errorf("no goroutine is in %s", WaitFunction)
	}
}

// shell returns a command that runs script, with a log of its own.
func shell(t *testing.T, script string) Command {
	t.Helper()
	return Command{Path: "sh", Args: []string{"-c", script}, Log: filepath.Join(t.TempDir(), "log")}
}

func start(t *testing.T, command Command) *Process {
	t.Helper()
	process, err := Start(command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	return process
}

// await waits until the child has printed text.
func await(t *testing.T, log, text string) {
	t.Helper()
	for {
		if content, _ := os.ReadFile(log); strings.Contains(string(content), text) {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("child has not printed %q", text)
		}
	}
}
