package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/postgres"

	"outboxrelay/internal/dockertest"
	"outboxrelay/internal/pgserver"
)

// Variable names the environment variable with the URL of a superuser of a server that tests may use. It must run with fsync=on, or
// the tests of exactly-once mode fail; with synchronous_commit=off, and its data in memory, they are quick.
const Variable = "RELAY_TEST_POSTGRES"

const (
	image = "postgres:18-alpine"
	// data is where the image keeps its data. It is in memory, where fsync=on costs nothing.
	data = "/var/lib/postgresql"
	// startPatience covers fetching an image or programs for the first time.
	startPatience = 5 * time.Minute
)

// Start returns the superuser's URL of a server for tests, and how to stop it: the server that Variable names, else one in a
// container, else one of this machine's own programs. Tests use Database, which calls it once.
func Start(ctx context.Context) (url string, stop func() error, err error) {
	if url := os.Getenv(Variable); url != "" {
		return url, func() error { return nil }, nil
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()

	noContainer := dockertest.Ping(ctx)
	if noContainer == nil {
		if url, stop, noContainer = startContainer(ctx); noContainer == nil {
			return url, stop, nil
		}
	}
	server, err := pgserver.Start(ctx, pgserver.Options{Download: true})
	if err != nil {
		return "", nil, errors.Join(err, noContainer)
	}
	return server.URL("postgres"), server.Stop, nil
}

func startContainer(ctx context.Context) (url string, stop func() error, err error) {
	container, err := postgres.Run(ctx, image,
		// The image's own default asks for passwords.
		testcontainers.WithEnv(map[string]string{"POSTGRES_HOST_AUTH_METHOD": "trust"}),
		testcontainers.WithTmpfs(map[string]string{data: "rw,size=2g"}),
		testcontainers.WithCmd("postgres", "-c", "synchronous_commit=off", "-c", "full_page_writes=off", "-c", "max_connections=200", "-c", "max_wal_size=256MB"),
		postgres.BasicWaitStrategies(),
	)
	stop = func() error { return testcontainers.TerminateContainer(container) }
	if err == nil {
		url, err = container.ConnectionString(ctx, "sslmode=disable")
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("start %s in a container: %w", image, err), stop())
	}
	return url, stop, nil
}
