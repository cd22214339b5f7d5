package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"outboxrelay/internal/childproc"
	"outboxrelay/internal/moments"
)

// stopGrace is more than a relay takes to end cleanly: RELAY_SHUTDOWN_GRACE is 20 s.
const stopGrace = 25 * time.Second

// relay is one of the relays under test. A relay that ends by itself is started again, and counted.
type relay struct {
	name    string
	command childproc.Command
	watch   *moments.Watch
	letGo   context.CancelFunc // lets what is held back go on

	mu      sync.Mutex
	process *childproc.Process // nil while it is meant to be away
	ended   []error            // how it ended by itself
	watches sync.WaitGroup
}

// newRelay prepares a relay whose way to the database leads through its own link.
func (s *stage) newRelay(number int, link *proxy, watch *moments.Watch) *relay {
	worker := fmt.Sprintf("worker-%d", max(1, number-1)) // the first two share one
	name := fmt.Sprintf("relay-%d", number)
	return &relay{name: name, watch: watch, command: childproc.Command{
		Path: s.program,
		Dir:  s.dir.Path,
		Env: slices.Concat(childproc.Environment("PG", "RELAY_"), s.settings(link), []string{
			"RELAY_WORKER_ID=" + worker, "RELAY_KAFKA_CLIENT_ID=" + name, "RELAY_INSTANCE=" + strconv.Itoa(number),
		}),
		Log:  filepath.Join(s.logs, name+".log"),
		Temp: s.dir,
	}}
}

func (r *relay) start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process != nil {
		return nil // it ended by itself meanwhile, and was started again
	}
	return r.launch()
}

// launch starts the process. It is called with mu held.
func (r *relay) launch() (err error) {
	if r.process, err = childproc.Start(r.command); err != nil {
		return err
	}
	process := r.process
	r.watches.Go(func() {
		<-process.Done()
		r.mourn(process)
	})
	return nil
}

// mourn starts the relay again if nobody wanted it to end.
func (r *relay) mourn(process *childproc.Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process != process {
		return
	}
	r.ended = append(r.ended, process.Failure(errors.New(r.name+" ended by itself")))
	r.process = nil
	if len(r.ended) > 20 {
		return
	}
	if err := r.launch(); err != nil {
		r.ended = append(r.ended, err)
	}
}

// take gives the process, which is allowed to end from now on.
func (r *relay) take() *childproc.Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	process := r.process
	r.process = nil
	return process
}

func (r *relay) kill() {
	if process := r.take(); process != nil {
		process.Kill()
	}
}

// stop asks the relay to end. An error says that it did not in time.
func (r *relay) stop() error {
	if process := r.take(); process != nil {
		return process.Stop(syscall.SIGTERM, stopGrace)
	}
	return nil
}

func (r *relay) signal(signal os.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process != nil {
		_ = r.process.Signal(signal) // an error says that it has just ended by itself, which mourn tells
	}
}

// failures are how the relay ended by itself.
func (r *relay) failures() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ended)
}

// races are the logs in which the race detector speaks.
func (s *stage) races() (found []error) {
	for _, r := range s.relays {
		content, err := os.ReadFile(r.command.Log)
		if err == nil && bytes.Contains(content, []byte("DATA RACE")) {
			err = fmt.Errorf("the race detector found a race, see %s (-logs keeps it)", r.command.Log)
		}
		if err != nil {
			found = append(found, err)
		}
	}
	return found
}
