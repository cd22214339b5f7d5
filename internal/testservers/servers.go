package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/pgtest"
)

// server is one that can be started. Its start returns what the variable is to hold, and how to stop it.
type server struct {
	name     string
	what     string
	variable string
	start    func(context.Context) (value string, stop func() error, err error)
}

var servers = []server{
	{"postgres", "a PostgreSQL server", pgtest.Variable, pgtest.Start},
	{"kafka", "a plain Kafka broker", kafkatest.Variable, startKafka},
	{"secure", "a Kafka broker with TLS, SCRAM and ACLs", kafkatest.SecureVariable, startSecureKafka},
}

func startKafka(ctx context.Context) (string, func() error, error) {
	addrs, stop, err := kafkatest.Start(ctx)
	return strings.Join(addrs, ","), stop, err
}

func startSecureKafka(ctx context.Context) (string, func() error, error) {
	credentials, stop, err := kafkatest.StartSecure(ctx)
	if err != nil {
		return "", nil, err
	}
	value, err := json.Marshal(credentials)
	return string(value), stop, err
}

// startAll starts the chosen servers at the same time and prints a line for each. It returns their variables, and a stop that
// must be called even when there is an error. A signal ends the start.
func startAll(signals <-chan os.Signal, chosen []server, messages io.Writer) (environment []string, stop func() error, err error) {
	ctx, cancel := untilSignal(signals)
	defer cancel()
	var (
		mu       sync.Mutex // guards what follows and messages
		stops    []func() error
		failures []error
		group    sync.WaitGroup
	)
	for _, server := range chosen {
		if os.Getenv(server.variable) != "" {
			fmt.Fprintf(messages, "testservers: %s is given by %s\n", server.name, server.variable)
			continue
		}
		group.Go(func() {
			begin := time.Now()
			value, stop, err := server.start(ctx)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", server.name, err))
				return
			}
			fmt.Fprintf(messages, "testservers: %s started in %.1f s\n", server.name, time.Since(begin).Seconds())
			environment = append(environment, server.variable+"="+value)
			stops = append(stops, stop)
		})
	}
	group.Wait()
	return environment, func() error { return stopAll(stops) }, errors.Join(failures...)
}

func stopAll(stops []func() error) (err error) {
	for _, stop := range stops {
		err = errors.Join(err, stop())
	}
	return err
}
