package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"outboxrelay/internal/childproc"
)

func TestHealthyEndsWithTheFirstFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ill, asked := errors.New("ill"), 0
		check := func(context.Context) error {
			if asked++; asked < 3 {
				return nil
			}
			return ill
		}
		err := healthy(t.Context(), check, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, ill) || asked != 3 {
			t.Errorf("healthy = %v after %d questions, want the third's answer", err, asked)
		}
		if err := healthy(t.Context(), check, func(context.Context) error { return nil }); err != nil {
			t.Errorf("healthy = %v where all went well", err)
		}
	})
}

func TestWatchedEndsWithTheProcess(t *testing.T) {
	t.Parallel()
	process, err := childproc.Start(childproc.Command{Path: "sh", Args: []string{"-c", "echo its words"}, Log: filepath.Join(t.TempDir(), "log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	err = watched(t.Context(), process, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	if err == nil || !strings.Contains(err.Error(), "ended by itself") || !strings.Contains(err.Error(), "its words") {
		t.Errorf("watched = %v, want that it ended, and its output", err)
	}
}
