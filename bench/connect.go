package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// put asks Connect to do something with the connector.
func (c capture) put(ctx context.Context, what string, settings [][2]string) error {
	var body []byte
	if settings != nil {
		body = connectConfig(settings)
	}
	status, answer, err := c.ask(ctx, http.MethodPut, what, body)
	if err != nil {
		return err
	}
	if status >= 300 {
		return fmt.Errorf("%s the connector: status %d: %s", what, status, answer)
	}
	return nil
}

func (c capture) ask(ctx context.Context, method, what string, body []byte) (status int, answer []byte, err error) {
	url := "http://" + c.address + "/connectors/" + connectorName + "/" + what
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// connectConfig are settings as Connect takes them by HTTP.
func connectConfig(settings [][2]string) []byte {
	config := map[string]string{}
	for _, s := range settings {
		config[s[0]] = s[1]
	}
	body, err := json.Marshal(config)
	if err != nil {
		panic(err) // strings can be marshalled
	}
	return body
}

// health asks Connect whether the connector has failed. The process goes on when it has.
func (c capture) health(ctx context.Context) error {
	status, answer, err := c.ask(ctx, http.MethodGet, "status", nil)
	if err != nil || status != http.StatusOK {
		return nil // it does not listen yet or does not know of the connector; or it has ended, which is seen elsewhere
	}
	return connectFailure(answer)
}

// connectFailure is what Connect's answer tells of a connector that has failed, and nil if it has not.
func connectFailure(status []byte) error {
	type part struct {
		State string `json:"state"`
		Trace string `json:"trace"`
	}
	var answer struct {
		Connector part   `json:"connector"`
		Tasks     []part `json:"tasks"`
	}
	if err := json.Unmarshal(status, &answer); err != nil {
		return fmt.Errorf("status of the connector: %w", err)
	}
	for _, p := range append(answer.Tasks, answer.Connector) {
		if p.State == "FAILED" {
			reason, _, _ := strings.Cut(p.Trace, "\n") // the log has the rest
			return errors.New("the connector has failed: " + reason)
		}
	}
	return nil
}
