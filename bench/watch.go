package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"outboxrelay/internal/childproc"
)

// watched calls do with a context that ends when a process does.
func watched(ctx context.Context, process *childproc.Process, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := errors.New("ended by itself")
	go func() {
		select {
		case <-process.Done():
			cancel(ended)
		case <-ctx.Done():
		}
	}()
	err := do(ctx)
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = fmt.Errorf("%w (%w)", err, cause)
	}
	return process.Failure(err)
}

// healthy calls do with a context that ends once check, which is asked every second, finds something wrong.
func healthy(ctx context.Context, check, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if err := check(ctx); err != nil {
				cancel(err)
				return
			}
		}
	}()
	err := do(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}
