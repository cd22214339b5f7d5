package main

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	const line = "4711 (a (strange) name) S 42 4711 4711 0 -1 4194304 9 8 7 6 150 50 30 20 20 0 1 0 100 200 300\n"
	got, err := parseStat([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	want := stat{pid: 4711, parent: 42, name: "a (strange) name", own: 2 * time.Second, reaped: 500 * time.Millisecond}
	if got != want {
		t.Errorf("parseStat = %+v, want %+v", got, want)
	}
	for _, broken := range []string{"", "4711", "4711 (name)", "4711 (name) S 42", "x (name) S 42 1 1 0 -1 0 9 8 7 6 1 1 1 1 20"} {
		if _, err := parseStat([]byte(broken)); err == nil {
			t.Errorf("parseStat(%q) succeeded", broken)
		}
	}
}

func TestOwnProcess(t *testing.T) {
	t.Parallel()
	own, err := readStat(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if own.pid != os.Getpid() || own.parent != os.Getppid() {
		t.Errorf("our stat tells pid %d and parent %d, want %d and %d", own.pid, own.parent, os.Getpid(), os.Getppid())
	}
	if memory, err := peakMemory(os.Getpid()); err != nil || memory < 1 || memory > 10_000 {
		t.Errorf("peakMemory = %v MiB, %v", memory, err)
	}
	if spent, err := runTime(os.Getpid()); err != nil || spent <= 0 {
		t.Errorf("runTime = %v, %v", spent, err)
	}
}

func TestChildNamed(t *testing.T) {
	t.Parallel()
	child := exec.Command("cat")
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = child.Wait()
	})
	if pid, err := childNamed("cat"); err != nil || pid != child.Process.Pid {
		t.Errorf("childNamed = %d, %v, want %d", pid, err, child.Process.Pid)
	}
	if _, err := cpuTime(child.Process.Pid); err != nil {
		t.Errorf("cpuTime: %v", err)
	}
	if _, err := cpuTime(-1); err == nil {
		t.Error("cpuTime of a process that does not exist succeeded")
	}
	if _, err := childNamed("nobody"); err == nil {
		t.Error("a child that does not exist was found")
	}
}
