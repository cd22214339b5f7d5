package aksaratest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"
)

// exporterTime bounds each wait for an exporter's next step.
const exporterTime = time.Minute

// ExporterOptions says how Aksara's own exporter runs. Without Calls and UntilEmpty it runs until Stop.
type ExporterOptions struct {
	Namespace  string
	Scope      string        // a tenant id or NonTenant
	WorkerID   string        // "" means one that Aksara makes up
	Claim      time.Duration // claim_seconds; 0 means Aksara's default, 30 seconds
	Retry      time.Duration // retry_seconds; 0 means at once, where Aksara's default is 5 seconds
	Calls      int           // ends after so many calls of export_once
	UntilEmpty bool          // ends at the first call that finds nothing to export
	FailFirst  int           // so many sink calls raise an error
	Error      string        // the error's text
	Hold       bool          // each sink call waits for Release
}

// Observed is a call of the exporter's sink.
type Observed struct {
	// Canonical is the payload as JSON without blanks and with its names sorted.
	Canonical string
	// Keys are the payload's names in the order that the sink saw.
	Keys []string
	// Returned tells that the export_once which made the call has ended. Exported is its result: false when the sink
	// failed or the claim was lost.
	Returned, Exported bool
}

// Exporter is a running DurableOutboxExporter with a sink that records. Its methods must be called from the test's goroutine.
type Exporter struct {
	t       testing.TB
	command *exec.Cmd
	stdin   io.WriteCloser
	stderr  bytes.Buffer // to be read after done
	done    chan struct{}
	err     error // set before done is closed

	mu       sync.Mutex // guards what follows
	observed []Observed
	changed  chan struct{} // closed and replaced at each change
}

// Export runs an exporter to its end and returns what its sink got.
func Export(t testing.TB, databaseURL string, options ExporterOptions) []Observed {
	t.Helper()
	return StartExporter(t, databaseURL, options).Wait()
}

// StartExporter starts an exporter. It is killed at the end of the test if it still runs.
func StartExporter(t testing.TB, databaseURL string, options ExporterOptions) *Exporter {
	t.Helper()
	command, cleanup, err := newScript(t.Context(), "export")
	if err != nil {
		t.Fatalf("aksaratest: %v", err)
	}
	t.Cleanup(cleanup)
	e := &Exporter{t: t, command: command, done: make(chan struct{}), changed: make(chan struct{})}
	if err := e.start(options.arguments(databaseURL)); err != nil {
		t.Fatalf("aksaratest: start the exporter: %v", err)
	}
	t.Cleanup(e.Kill)
	return e
}

func (o ExporterOptions) arguments(databaseURL string) map[string]any {
	if o.Claim == 0 {
		o.Claim = 30 * time.Second
	}
	return map[string]any{
		"url":         databaseURL,
		"namespace":   o.Namespace,
		"scope":       o.Scope,
		"worker":      o.WorkerID,
		"claim":       o.Claim.Seconds(),
		"retry":       o.Retry.Seconds(),
		"calls":       o.Calls,
		"until_empty": o.UntilEmpty,
		"fail":        o.FailFirst,
		"error":       o.Error,
		"hold":        o.Hold,
	}
}

func (e *Exporter) start(arguments map[string]any) error {
	input, err := json.Marshal(arguments)
	if err != nil {
		return err
	}
	e.command.Stderr = &e.stderr
	if e.stdin, err = e.command.StdinPipe(); err != nil {
		return err
	}
	stdout, err := e.command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := e.command.Start(); err != nil {
		return err
	}
	go e.follow(stdout)
	e.send(string(input))
	return nil
}

// follow records what the exporter prints until its end.
func (e *Exporter) follow(stdout io.Reader) {
	defer close(e.done)
	for lines := json.NewDecoder(stdout); ; {
		var line struct {
			Sink *struct {
				Canonical string
				Keys      []string
			}
			Exported bool
		}
		if err := lines.Decode(&line); err != nil {
			break
		}
		e.mu.Lock()
		if line.Sink != nil {
			e.observed = append(e.observed, Observed{Canonical: line.Sink.Canonical, Keys: line.Sink.Keys})
		} else {
			last := &e.observed[len(e.observed)-1]
			last.Returned, last.Exported = true, line.Exported
		}
		close(e.changed)
		e.changed = make(chan struct{})
		e.mu.Unlock()
	}
	e.err = e.command.Wait()
}

// Observed returns the sink's calls so far.
func (e *Exporter) Observed() []Observed {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.observed)
}

// WaitObserved waits until the sink was called n times and returns its calls.
func (e *Exporter) WaitObserved(n int) []Observed {
	e.t.Helper()
	return e.await(fmt.Sprintf("sink call %d", n), func(seen []Observed) bool { return len(seen) >= n })
}

// WaitReturned waits until n calls of export_once that found an event have returned and returns the sink's calls.
func (e *Exporter) WaitReturned(n int) []Observed {
	e.t.Helper()
	return e.await(fmt.Sprintf("the end of sink call %d", n), func(seen []Observed) bool {
		return len(seen) >= n && seen[n-1].Returned
	})
}

// await waits until reached holds of the sink's calls.
func (e *Exporter) await(what string, reached func([]Observed) bool) []Observed {
	e.t.Helper()
	deadline := time.After(exporterTime)
	for {
		e.mu.Lock()
		seen, changed := slices.Clone(e.observed), e.changed
		e.mu.Unlock()
		if reached(seen) {
			return seen
		}
		select {
		case <-changed:
		case <-e.done:
			if seen := e.Observed(); reached(seen) {
				return seen
			}
			e.t.Fatalf("aksaratest: the exporter ended before %s: %v\n%s", what, e.err, lastLines(e.stderr.Bytes()))
		case <-deadline:
			e.t.Fatalf("aksaratest: no %s within %s; seen: %d", what, exporterTime, len(seen))
		}
	}
}

// Release lets one sink call of an exporter with Hold return, the one that waits or the next.
func (e *Exporter) Release() { e.send("release") }

// Stop lets the sink call under way return, ends the exporter and returns all its sink's calls.
func (e *Exporter) Stop() []Observed {
	e.t.Helper()
	e.send("stop")
	return e.end(exporterTime)
}

// Wait waits for the end of an exporter that ends by itself, 10 minutes at most, and returns its sink's calls.
func (e *Exporter) Wait() []Observed {
	e.t.Helper()
	return e.end(scriptTime)
}

// end waits for the exporter's end.
func (e *Exporter) end(limit time.Duration) []Observed {
	e.t.Helper()
	select {
	case <-e.done:
	case <-time.After(limit):
		e.t.Fatalf("aksaratest: the exporter did not end within %s", limit)
	}
	if e.err != nil {
		e.t.Fatalf("aksaratest: the exporter failed: %v\n%s", e.err, lastLines(e.stderr.Bytes()))
	}
	return e.Observed()
}

// Kill ends the exporter as kill -9 does: a claim that it holds stays. It does nothing to one that has ended.
func (e *Exporter) Kill() {
	// An error means that it has ended already.
	_ = e.command.Process.Kill()
	<-e.done
}

// send writes a line to the exporter's standard input. An error means that it has ended, which the waiting methods report.
func (e *Exporter) send(line string) { _, _ = io.WriteString(e.stdin, line+"\n") }
