package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"outboxrelay/internal/settings"
)

// healthyTimeout is how long a relay may take for an answer that it has in memory.
const healthyTimeout = 5 * time.Second

// healthy asks the relay of this environment whether it makes progress. A container's
// health check calls it, where there is no shell and no other program.
func (a *app) healthy(ctx context.Context, args []string) error {
	if err := parse(flags("healthy"), args); err != nil {
		return err
	}
	address, err := settings.HTTPAddress(a.environ)
	if err != nil {
		return err
	}
	if address == "" {
		return errors.New("RELAY_HTTP_ADDRESS is off, so there is nobody to ask: set it, or do without a health check (docker run --no-healthcheck)")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, healthyTimeout, fmt.Errorf("no answer in %s", healthyTimeout))
	defer cancel()
	answer, err := askLive(ctx, address)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.stdout, answer)
	return err
}

// askLive gets /livez from an address that a relay listens on.
func askLive(ctx context.Context, address string) (string, error) {
	// The address is dialled as it is: one without a host, or with 0.0.0.0, is this machine.
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://relay/livez", nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("ask the relay on %s: %w", address, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if err != nil {
		return "", fmt.Errorf("ask the relay on %s: %w", address, err)
	}
	answer := strings.TrimSpace(string(body))
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("not healthy: %s", answer)
	}
	return answer, nil
}
