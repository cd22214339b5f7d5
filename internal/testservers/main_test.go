package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/childproc"
)

// programVariable makes the test program behave as the program itself.
const programVariable = "TESTSERVERS_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		os.Unsetenv(programVariable)
		main()
	}
	os.Exit(m.Run())
}

func TestCommandFindsTheServersWhichGoWithIt(t *testing.T) {
	t.Parallel()
	program := start(t, nil, "-postgres", "-kafka", "--", "sh", "-c", `echo "$RELAY_TEST_POSTGRES $RELAY_TEST_KAFKA"; exit 7`)
	database, brokers, found := strings.Cut(program.line(t), " ")
	if !found || brokers == "" {
		t.Fatalf("the command has RELAY_TEST_POSTGRES=%q and RELAY_TEST_KAFKA=%q", database, brokers)
	}
	if status := program.end(t); status != 7 {
		t.Errorf("status %d, want the command's 7", status)
	}
	refuses(t, database)
	for _, want := range []string{"postgres started in ", "kafka started in "} {
		if !strings.Contains(program.messages.String(), want) {
			t.Errorf("messages lack %q:\n%s", want, program.messages)
		}
	}
}

func TestSignalIsPassedOn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script string
		status int
	}{
		"caught":   {`trap 'exit 9' TERM; echo "$RELAY_TEST_POSTGRES"; while :; do sleep 0.01; done`, 9},
		"uncaught": {`echo "$RELAY_TEST_POSTGRES"; exec sleep 600`, statusSignal + int(syscall.SIGTERM)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := start(t, nil, "-postgres", "--", "sh", "-c", test.script)
			database := program.line(t)
			if err := program.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if status := program.end(t); status != test.status {
				t.Errorf("status %d, want %d", status, test.status)
			}
			refuses(t, database)
		})
	}
}

func TestGivenServerIsUsedAsItIs(t *testing.T) {
	t.Parallel()
	program := start(t, []string{"RELAY_TEST_POSTGRES=postgres://given"}, "-postgres", "--", "sh", "-c", `echo "$RELAY_TEST_POSTGRES"`)
	if got := program.line(t); got != "postgres://given" {
		t.Errorf("the command has RELAY_TEST_POSTGRES=%q, want the given one", got)
	}
	if status := program.end(t); status != 0 {
		t.Errorf("status %d, want 0", status)
	}
}

func TestWrongCallsAreExplained(t *testing.T) {
	t.Setenv("RELAY_TEST_POSTGRES", "postgres://given")
	for name, test := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"no server":    {[]string{"--", "true"}, statusUsage, "name a server"},
		"no command":   {[]string{"-postgres"}, statusUsage, "a command"},
		"unknown flag": {[]string{"-redis", "--", "true"}, statusUsage, "usage:"},
		"help":         {[]string{"-h"}, 0, "usage:"},
		"no program":   {[]string{"-postgres", "--", "no-such-program"}, statusFailed, "no-such-program"},
	} {
		t.Run(name, func(t *testing.T) {
			var messages strings.Builder
			if status := run(test.args, &messages); status != test.status {
				t.Errorf("status %d, want %d", status, test.status)
			}
			if !strings.Contains(messages.String(), test.says) {
				t.Errorf("messages lack %q:\n%s", test.says, messages.String())
			}
		})
	}
}

func TestFailedStartStopsWhatHasStarted(t *testing.T) {
	t.Parallel()
	stopped := false
	broken := errors.New("broken on purpose")
	_, stop, err := startAll(nil, []server{
		{name: "good", start: func(context.Context) (string, func() error, error) {
			return "", func() error { stopped = true; return nil }, nil
		}},
		{name: "bad", start: func(context.Context) (string, func() error, error) { return "", nil, broken }},
	}, io.Discard)
	if !errors.Is(err, broken) {
		t.Errorf("startAll = %v, want the failure", err)
	}
	if err := stop(); err != nil || !stopped {
		t.Errorf("stop = %v, stopped = %t, want the good server stopped", err, stopped)
	}
}

func TestSignalEndsAStart(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	_, _, err := startAll(signals, []server{{name: "slow", start: func(ctx context.Context) (string, func() error, error) {
		<-ctx.Done()
		return "", nil, context.Cause(ctx)
	}}}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("startAll = %v, want the signal named", err)
	}
}

// program is this program, running.
type program struct {
	cmd      *exec.Cmd
	output   *bufio.Reader
	messages *strings.Builder
}

// start starts it with variables, and without what a run of it around these tests has set.
func start(t *testing.T, variables []string, args ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(os.Args[0], args...), messages: &strings.Builder{}}
	p.cmd.Env = append(childproc.Environment("RELAY_TEST_"), programVariable+"=1")
	p.cmd.Env = append(p.cmd.Env, variables...)
	p.cmd.Stderr = p.messages
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.output = bufio.NewReader(output)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// line returns the first line that the command prints.
func (p *program) line(t *testing.T) string {
	t.Helper()
	line, err := p.output.ReadString('\n')
	if err != nil {
		_ = p.cmd.Wait()
		t.Fatalf("the command printed nothing: %v; messages:\n%s", err, p.messages)
	}
	return strings.TrimSpace(line)
}

func (p *program) end(t *testing.T) int {
	t.Helper()
	if err := p.cmd.Wait(); p.cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// refuses checks that the server at address has gone.
func refuses(t *testing.T, address string) {
	t.Helper()
	if parsed, err := url.Parse(address); err != nil || parsed.Host == "" {
		t.Fatalf("%q is no URL of a server", address)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if conn, err := pgx.Connect(ctx, address); err == nil {
		conn.Close(ctx)
		t.Error("the server still runs")
	}
}
