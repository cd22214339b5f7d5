package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"outboxrelay/internal/childproc"
)

// verifyExport has the relay export very many rows, and its verify command then compare them with the topic.
func verifyExport(ctx context.Context, s *stage) ([]target, error) {
	drained := s.operations
	s.operations = s.verified
	defer func() { s.operations = drained }()
	s.note("verify: writing %s rows", whole(float64(s.backlog())))
	d, err := s.newDatabase(ctx, variants[0])
	if err != nil {
		return nil, err
	}
	if err := d.fill(ctx, scopes(s.tenants), s.operations); err != nil {
		return nil, err
	}
	t, err := s.newTopic(ctx)
	if err != nil {
		return nil, err
	}
	s.note("verify: exporting them")
	if _, err := s.runRelay(ctx, d, t); err != nil {
		return nil, err
	}
	v, err := s.runVerify(ctx, d, t)
	if err != nil {
		return nil, err
	}
	s.note("verify: %s rows/s", whole(v.speed()))
	v.print(s)
	if err := t.drop(ctx); err != nil {
		return nil, err
	}
	return []target{atMost("verify, its memory at its highest, MiB", v.memory, 200, tenths)}, d.drop(ctx)
}

// verified is how a comparison went.
type verified struct {
	rows         int
	elapsed, cpu time.Duration
	memory       float64 // the most that was resident, in MiB
}

func (v verified) speed() float64 { return float64(v.rows) / v.elapsed.Seconds() }

func (v verified) print(s *stage) {
	t := table{
		title: fmt.Sprintf("Verify: %s rows, exported and retained", whole(float64(v.rows))),
		head:  []string{"rows/s", "seconds", "its CPU, µs/row", "peak memory, MiB"},
	}
	t.add(whole(v.speed()), tenths(v.elapsed.Seconds()), tenths(microseconds(v.cpu)/float64(v.rows)), tenths(v.memory))
	t.print(s.out)
}

// runVerify runs the command. It must find as many rows and records as there are, and no fault.
func (s *stage) runVerify(ctx context.Context, d database, t topic) (v verified, err error) {
	command := exec.CommandContext(ctx, s.program, "verify")
	command.Dir = s.dir.Path
	command.Env = slices.Concat(childproc.Environment("PG"), s.settings(d, t, scopes(s.tenants)))
	command.Stderr = os.Stderr
	start := time.Now()
	output, err := command.Output()
	if err != nil {
		return v, fmt.Errorf("verify: %w\n%s", err, output)
	}
	v = verified{rows: s.backlog(), elapsed: time.Since(start), cpu: command.ProcessState.UserTime() + command.ProcessState.SystemTime()}
	usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return v, errors.New("the system does not tell what a process used")
	}
	v.memory = float64(usage.Maxrss) / 1024 // it is in KiB
	if want := fmt.Sprintf("compared %d rows with %d records", v.rows, v.rows); !strings.Contains(string(output), want) {
		return v, fmt.Errorf("verify said %q, want %q in it", output, want)
	}
	return v, nil
}
