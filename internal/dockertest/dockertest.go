// Package dockertest tells tests whether they can run servers in containers here.
package dockertest

import (
	"context"
	"fmt"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

// patience is how long an engine may take to answer: one that is there does at once.
const patience = 3 * time.Second

// Ping returns an error unless a Docker engine answers quickly. Where to look for it is testcontainers' business: DOCKER_HOST,
// Docker's own settings, the usual sockets.
func Ping(ctx context.Context) (err error) {
	// testcontainers panics where there is no engine at all.
	defer func() {
		if found := recover(); found != nil {
			err = fmt.Errorf("no Docker engine: %v", found)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return fmt.Errorf("no Docker engine: %w", err)
	}
	defer client.Close()
	if _, err := client.Ping(ctx); err != nil {
		return fmt.Errorf("no Docker engine answers: %w", err)
	}
	return nil
}
