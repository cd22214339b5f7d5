package kafkatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/kafka"

	"outboxrelay/internal/dockertest"
	"outboxrelay/internal/kafkaserver"
)

const (
	// Variable names the environment variable with the addresses of plain brokers that tests may use.
	Variable = "RELAY_TEST_KAFKA"
	// SecureVariable names the one with a secured broker's credentials, kafkaserver.Credentials as JSON.
	SecureVariable = "RELAY_TEST_KAFKA_SECURE"

	image = "confluentinc/confluent-local:7.5.0"
	// startPatience covers fetching an image or jars for the first time.
	startPatience = 5 * time.Minute
)

// Start returns the addresses of a plain broker for tests, and how to stop it: those that Variable names, else one in a
// container, else one under this machine's Java. Tests use Plain, which calls it once.
func Start(ctx context.Context) (addrs []string, stop func() error, err error) {
	if given := os.Getenv(Variable); given != "" {
		return strings.Split(given, ","), func() error { return nil }, nil
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()

	noContainer := dockertest.Ping(ctx)
	if noContainer == nil {
		if addrs, stop, noContainer = startContainer(ctx); noContainer == nil {
			return addrs, stop, nil
		}
	}
	server, err := kafkaserver.Start(ctx, kafkaserver.Options{})
	if err != nil {
		return nil, nil, errors.Join(err, noContainer)
	}
	return server.Addrs(), server.Close, nil
}

func startContainer(ctx context.Context) (addrs []string, stop func() error, err error) {
	container, err := kafka.Run(ctx, image, testcontainers.WithEnv(map[string]string{
		"KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false",
	}))
	stop = func() error { return testcontainers.TerminateContainer(container) }
	if err == nil {
		addrs, err = container.Brokers(ctx)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start %s in a container: %w", image, err), stop())
	}
	return addrs, stop, nil
}

// StartSecure returns the administrator's credentials of a secured broker for tests, and how to stop it: those that
// SecureVariable holds, else those of one under this machine's Java. Tests use Secure, which calls it once.
func StartSecure(ctx context.Context) (credentials kafkaserver.Credentials, stop func() error, err error) {
	if given := os.Getenv(SecureVariable); given != "" {
		// The error of Unmarshal could show a part of the text, and it holds a password.
		if json.Unmarshal([]byte(given), &credentials) != nil || len(credentials.Addrs) == 0 {
			return credentials, nil, fmt.Errorf("%s is no JSON object with addrs, ca, username and password", SecureVariable)
		}
		return credentials, func() error { return nil }, nil
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	server, err := kafkaserver.Start(ctx, kafkaserver.Options{Secure: true})
	if err != nil {
		return credentials, nil, err
	}
	return server.Credentials(), server.Close, nil
}
