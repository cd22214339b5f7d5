package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds each wait of these tests; a loaded machine is slow.
const patience = time.Minute

// program is the relay's path, built once with the race detector.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "relay-e2e-")
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

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := program(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// process is a relay that runs.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	log    *logBuffer
	exited chan struct{}
	err    error // set before exited is closed
}

// start runs "relay run" with the environment and nothing else in it. It is killed when
// the test ends, unless it has ended by then.
func start(t *testing.T, env map[string]string) *process {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, log: &logBuffer{}, exited: make(chan struct{})}
	p.cmd = exec.Command(path, "run")
	p.cmd.Env = environment(env)
	p.cmd.Stderr, p.cmd.Stdout = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("relay's log:\n%s", p.log.String())
		}
		if strings.Contains(p.log.String(), "DATA RACE") {
			t.Error("the race detector found a race in the relay")
		}
	})
	return p
}

func environment(env map[string]string) []string {
	list := []string{"HOME=/nonexistent"}
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

// command runs one of the program's commands to its end.
func command(t *testing.T, env map[string]string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
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

// kill ends the process as a crash would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error says that it has ended
	<-p.exited
}

// stop asks the process to end and gives its status.
func (p *process) stop() int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatalf("relay has ended by itself: %v\n%s", err, p.log.String())
	}
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.t.Fatal("relay does not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

var addressLine = regexp.MustCompile(`"address":"([^"]+)"`)

// get asks the relay's HTTP side.
func (p *process) get(path string) (status int, body string) {
	p.t.Helper()
	var address string
	until(p.t, "the HTTP address in the log", func() error {
		match := addressLine.FindStringSubmatch(p.log.String())
		if match == nil {
			return errors.New("not there")
		}
		address = match[1]
		return nil
	})
	resp, err := http.Get("http://" + address + path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(content)
}

// logBuffer collects output from several goroutines.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// until waits for a condition and fails with its last error.
func until(t *testing.T, what string, condition func() error) {
	t.Helper()
	untilIn(t, patience, what, condition)
}

func untilIn(t *testing.T, limit time.Duration, what string, condition func() error) {
	t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := condition()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("waited %s for %s: %v", limit, what, err)
		case <-tick.C:
		}
	}
}
