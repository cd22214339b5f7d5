// Testservers starts the servers that tests need, runs a command that uses them, and stops them again:
//
//	go run ./internal/testservers -postgres -kafka -secure -- go test ./...
//
// The command finds them in RELAY_TEST_POSTGRES, RELAY_TEST_KAFKA and RELAY_TEST_KAFKA_SECURE; a server whose variable is
// set already is not started. Without this program each package's tests would start servers of their own.
//
// It ends with the command's status, with 128 and the signal's number added if a signal ended the command, with 1 if a
// server or the command could not be started, and with 2 if it was called in a wrong way.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

const (
	statusFailed = 1
	statusUsage  = 2
	statusSignal = 128
)

func main() {
	os.Exit(run(os.Args[1:], os.Stderr))
}

func run(args []string, messages io.Writer) int {
	chosen, command, err := parse(args, messages)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(messages, "testservers:", err)
		return statusUsage
	}
	// From here on a signal is the command's, or ends a start that is going on.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	environment, stop, err := startAll(signals, chosen, messages)
	status := statusFailed
	if err == nil {
		status, err = execute(command, append(os.Environ(), environment...), signals)
	}
	if err = errors.Join(err, stop()); err != nil {
		fmt.Fprintln(messages, "testservers:", err)
		status = max(status, statusFailed)
	}
	return status
}

// parse returns the servers that args choose, and the command.
func parse(args []string, messages io.Writer) (chosen []server, command []string, err error) {
	flags := flag.NewFlagSet("testservers", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // run prints the error
	flags.Usage = func() {
		flags.SetOutput(messages)
		fmt.Fprintln(messages, "usage: testservers [-postgres] [-kafka] [-secure] -- COMMAND [ARG...]")
		flags.PrintDefaults()
	}
	wanted := map[string]*bool{}
	for _, server := range servers {
		wanted[server.name] = flags.Bool(server.name, false, "start "+server.what)
	}
	if err := flags.Parse(args); err != nil {
		return nil, nil, err
	}
	for _, server := range servers {
		if *wanted[server.name] {
			chosen = append(chosen, server)
		}
	}
	if len(chosen) == 0 || flags.NArg() == 0 {
		return nil, nil, errors.New("name a server, and after -- a command")
	}
	return chosen, flags.Args(), nil
}

// execute runs the command with our input and output and passes signals on to it. A terminal's Ctrl-C reaches the command
// by itself too, so it may get that signal twice.
func execute(command, environment []string, signals <-chan os.Signal) (status int, err error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = environment
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return statusFailed, fmt.Errorf("start the command: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case received := <-signals:
			// An error means that the command has just ended.
			_ = cmd.Process.Signal(received)
		case err := <-ended:
			return statusOf(cmd.ProcessState, err)
		}
	}
}

func statusOf(state *os.ProcessState, err error) (int, error) {
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return statusFailed, fmt.Errorf("run the command: %w", err)
	}
	if wait, ok := state.Sys().(syscall.WaitStatus); ok && wait.Signaled() {
		return statusSignal + int(wait.Signal()), nil
	}
	return state.ExitCode(), nil
}

// untilSignal returns a context that ends when a signal comes. Call cancel in any case.
func untilSignal(signals <-chan os.Signal) (ctx context.Context, cancel context.CancelFunc) {
	ctx, end := context.WithCancelCause(context.Background())
	go func() {
		select {
		case received := <-signals:
			end(fmt.Errorf("stopped by signal: %s", received))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { end(nil) }
}
