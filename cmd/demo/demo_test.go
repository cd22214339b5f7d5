package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestDemo runs the demonstration as a user does.
func TestDemo(t *testing.T) {
	t.Parallel()
	built := build(t)
	t.Run("two at once end within a minute", func(t *testing.T) {
		t.Parallel()
		for _, d := range []*running{start(t, built), start(t, built)} {
			d.checkWholeStory(t)
		}
	})
	t.Run("in exactly-once mode", func(t *testing.T) {
		t.Parallel()
		d := start(t, built, "-delivery", "exactly-once")
		output := d.readAll(t)
		if status := d.status(); status != statusDone {
			t.Fatalf("status %d, want %d; output:\n%s", status, statusDone, output)
		}
		if !strings.Contains(output, "each event is there once") || strings.Contains(output, "s  "+duplicate) {
			t.Errorf("it does not say that each event is there once; output:\n%s", output)
		}
	})
	for name, end := range map[string]ending{
		"Ctrl-C at the start":     {"A PostgreSQL server", syscall.SIGINT, statusInterrupted},
		"Ctrl-C while relaying":   {"s  exported", syscall.SIGINT, statusInterrupted},
		"Ctrl-C after the crash":  {"claim ends in", syscall.SIGINT, statusInterrupted},
		"terminated":              {"claim ends in", syscall.SIGTERM, statusInterrupted},
		"killed without a chance": {"claim ends in", syscall.SIGKILL, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := start(t, built)
			d.readUntil(t, end.moment)
			d.end(t, end.signal, end.status)
		})
	}
	t.Run("kept up until Ctrl-C", func(t *testing.T) {
		t.Parallel()
		d := start(t, built, "-keep")
		psql := d.readUntil(t, "psql '")
		d.readUntil(t, "Ctrl-C ends it")
		awaitMoreExported(t, regexp.MustCompile(`'(.*)'`).FindStringSubmatch(psql)[1])
		d.end(t, syscall.SIGINT, statusDone)
	})
}

// ending is when a demonstration gets which signal, and the status that it then ends with; -1 if it can't have one.
type ending struct {
	moment string
	signal syscall.Signal
	status int
}

func (d *running) checkWholeStory(t *testing.T) {
	t.Helper()
	output := d.readAll(t)
	if status := d.status(); status != statusDone {
		t.Fatalf("status %d, want %d; output:\n%s", status, statusDone, output)
	}
	if took := time.Since(d.started); took > time.Minute {
		t.Errorf("took %s, want at most a minute", took)
	}
	for _, kind := range []string{written, claimed, delivered, exported, refused, held, killed, duplicate} {
		if !strings.Contains(output, "s  "+kind) {
			t.Errorf("nothing was shown as %q; output:\n%s", kind, output)
		}
	}
	if strings.Contains(output, "\x1b[") {
		t.Error("colours were used, although this is no terminal")
	}
	d.leavesNothing(t)
}

// end sends a signal, and checks how the demonstration ends.
func (d *running) end(t *testing.T, signal syscall.Signal, want int) {
	t.Helper()
	if err := d.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	signalled := time.Now()
	rest := d.readAll(t)
	if status := d.status(); status != want {
		t.Errorf("status %d, want %d; rest of the output:\n%s", status, want, rest)
	}
	if took := time.Since(signalled); took > 15*time.Second {
		t.Errorf("it took %s to end", took)
	}
	d.leavesNothing(t)
}

// awaitMoreExported waits until more events than at first are exported in the database at url.
func awaitMoreExported(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatalf("the address for psql: %v", err)
	}
	defer conn.Close(ctx)
	before := -1
	eventually(t, func() error {
		var now int
		if err := conn.QueryRow(ctx, "select count(exported_at) from aksara_operation_outbox").Scan(&now); err != nil {
			return err
		}
		if before < 0 {
			before = now
		}
		if now == before {
			return fmt.Errorf("%d events are exported, as at first", now)
		}
		return nil
	})
}

func TestBadUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-nonsense"}, {"again"}} {
		if status := run(t.Context(), args, io.Discard, io.Discard); status != statusUsage {
			t.Errorf("status %d for %q, want %d", status, args, statusUsage)
		}
	}
}
