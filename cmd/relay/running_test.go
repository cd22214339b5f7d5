package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/waittest"
)

// running is a relay that runs in this process.
type running struct {
	log    *logLines
	cancel context.CancelFunc
	ended  chan struct{}
	status int // once ended
}

// startRelay runs a relay until the test ends.
func startRelay(t *testing.T, env map[string]string) *running {
	t.Helper()
	env["RELAY_HTTP_ADDRESS"], env["RELAY_HTTP_DETAILS"] = "127.0.0.1:0", "true"
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{log: &logLines{}, cancel: cancel, ended: make(chan struct{})}
	a := &app{environ: environ(env), hostname: "host", stdout: io.Discard, stderr: r.log}
	go func() {
		defer close(r.ended)
		r.status = a.run(ctx, nil)
	}()
	t.Cleanup(func() {
		r.stop(t)
		if t.Failed() {
			t.Logf("the relay's log:\n%s", r.log)
		}
	})
	return r
}

// stop ends the relay, which must be done in time and with status 0.
func (r *running) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	select {
	case <-r.ended:
		if r.status != statusDone {
			t.Errorf("the relay ended with status %d", r.status)
		}
	case <-time.After(time.Minute):
		t.Error("the relay has not ended a minute after it should")
	}
}

// ready is nil if the relay says that it is ready, else its reason.
func (r *running) ready() error {
	_, err := r.get("/readyz")
	return err
}

// get asks the relay over HTTP. Any status but 200 is an error.
func (r *running) get(path string) (body string, err error) {
	address := r.log.value("HTTP is served", "address")
	if address == "" {
		return "", errors.New("HTTP isn't served yet")
	}
	response, err := http.Get("http://" + address + path)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", response.StatusCode, text)
	}
	return string(text), err
}

// shows is nil if the metrics have these lines.
func (r *running) shows(lines ...string) error {
	metrics, err := r.get("/metrics")
	for _, line := range lines {
		if err == nil && !strings.Contains(metrics, "\n"+line+"\n") {
			err = fmt.Errorf("no metric %q", line)
		}
	}
	return err
}

// awaitReason waits until the relay is not ready for a reason that holds the text.
func (r *running) awaitReason(t *testing.T, reason string) {
	t.Helper()
	eventually(t, func() error {
		err := r.ready()
		if err == nil || !strings.Contains(err.Error(), "status 503") || !strings.Contains(err.Error(), reason) {
			return fmt.Errorf("readiness is %v, want status 503 with %q", err, reason)
		}
		return nil
	})
}

// eventually waits until the condition holds, and fails with its last error.
func eventually(t *testing.T, condition func() error) {
	t.Helper()
	waittest.Until(t, time.Minute, "a condition", condition)
}

// logLines is a log of JSON lines that may be read while it is written.
type logLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// value is a field of the first line with the message, "" if there is none.
func (l *logLines) value(message, field string) string {
	lines := bufio.NewScanner(strings.NewReader(l.String()))
	for lines.Scan() {
		var line map[string]any
		if json.Unmarshal(lines.Bytes(), &line) == nil && line["message"] == message {
			text, _ := line[field].(string)
			return text
		}
	}
	return ""
}

// delivered waits until the relay is ready and the three events are in the topic.
func (r *running) delivered(t *testing.T, broker *kafkatest.Broker, topic string) {
	t.Helper()
	if records := broker.Consume(t, topic, 3); len(records) != 3 {
		t.Errorf("%d records, want 3", len(records))
	}
	eventually(t, r.ready)
}
