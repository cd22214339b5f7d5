package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"outboxrelay/internal/childproc"
)

// relayGrace is how long the relay may take to end in an orderly way; its own limit is RELAY_SHUTDOWN_GRACE.
const relayGrace = 15 * time.Second

// relayProgram is the relay and how it is told what to do.
type relayProgram struct {
	path        string
	dir         *childproc.TempDir
	address     string   // where it serves HTTP
	environment []string // NAME=value
}

// relayPath is the absolute path of the given program or, if none is given, of one that it builds into dir.
func relayPath(ctx context.Context, given, dir string) (string, error) {
	if given == "" {
		return buildRelay(ctx, dir)
	}
	path, err := exec.LookPath(given)
	if err != nil {
		return "", fmt.Errorf("-relay: %w", err)
	}
	return filepath.Abs(path)
}

// buildRelay compiles the relay into dir.
func buildRelay(ctx context.Context, dir string) (path string, err error) {
	path = filepath.Join(dir, "relay")
	output, err := exec.CommandContext(ctx, "go", "build", "-o", path, "outboxrelay/cmd/relay").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the relay (run this in the module's folder, or give -relay PROGRAM): %w\n%s", err, output)
	}
	return path, nil
}

// writeEnvironment leaves the relay's environment in a file, for commands by hand.
func (p *relayProgram) writeEnvironment() (file string, err error) {
	file = filepath.Join(p.dir.Path, "relay.env")
	return file, os.WriteFile(file, []byte(strings.Join(p.environment, "\n")+"\n"), 0o644)
}

// relayProcess is a relay that runs.
type relayProcess struct {
	process *childproc.Process
	wanted  atomic.Bool // its end is our doing
}

// start runs the relay and returns once it is ready. unexpected is called if it ends without our doing.
func (p *relayProgram) start(ctx context.Context, unexpected func(error)) (*relayProcess, error) {
	process, err := childproc.Start(childproc.Command{
		Path: p.path,
		Dir:  p.dir.Path,
		Env:  append(childproc.Environment("RELAY_", "PG"), p.environment...),
		Log:  p.log(),
		Temp: p.dir,
	})
	if err != nil {
		return nil, err
	}
	r := &relayProcess{process: process}
	if err := process.AwaitReady(ctx, p.ready); err != nil {
		r.kill()
		return nil, err
	}
	go func() {
		<-process.Done()
		if !r.wanted.Load() {
			unexpected(process.Failure(errors.New("ended by itself")))
		}
	}()
	return r, nil
}

func (p *relayProgram) log() string { return filepath.Join(p.dir.Path, "relay.log") }

// ready asks the relay's own probe.
func (p *relayProgram) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	reason, _ := io.ReadAll(response.Body) // only to tell what is wrong
	if response.StatusCode != http.StatusOK {
		return errors.New(strings.TrimSpace(string(reason)))
	}
	return nil
}

// kill ends the relay as a crash does, and returns when it is gone. Killing it twice does nothing.
func (r *relayProcess) kill() {
	r.wanted.Store(true)
	r.process.Kill()
}

// stop ends the relay in an orderly way.
func (r *relayProcess) stop() error {
	r.wanted.Store(true)
	return r.process.Stop(syscall.SIGTERM, relayGrace)
}
