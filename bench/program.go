package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/internal/childproc"
)

const (
	// patience bounds each wait for the relay.
	patience = 10 * time.Minute
	// relayGrace is how long the relay may take to end; its own limit is RELAY_SHUTDOWN_GRACE.
	relayGrace = 30 * time.Second
)

// relayProcess is the program under test, running.
type relayProcess struct {
	process *childproc.Process
	address string // where it serves HTTP
	started time.Time
}

// startRelay runs the relay for some tenants, with more settings as NAME=value.
func (s *stage) startRelay(d database, t topic, tenants []envelope.Scope, more ...string) (*relayProcess, error) {
	ports, err := childproc.FreePorts(1)
	if err != nil {
		return nil, err
	}
	r := &relayProcess{address: childproc.Loopback(ports[0]), started: time.Now()}
	command := s.relayCommand(d, t, tenants, r.address)
	command.Env = append(command.Env, more...)
	if r.process, err = childproc.Start(command); err != nil {
		return nil, err
	}
	return r, nil
}

// relayCommand is the relay that serves HTTP at an address.
func (s *stage) relayCommand(d database, t topic, tenants []envelope.Scope, address string) childproc.Command {
	return childproc.Command{
		Path: s.program,
		Dir:  s.dir.Path,
		Env:  slices.Concat(childproc.Environment("PG"), s.settings(d, t, tenants), []string{"RELAY_HTTP_ADDRESS=" + address}),
		Log:  filepath.Join(s.dir.Path, "relay.log"),
		Temp: s.dir,
	}
}

// settings are the variables that a relay can't do without here.
func (s *stage) settings(d database, t topic, tenants []envelope.Scope) []string {
	var ids []string
	for _, scope := range tenants {
		id, _ := scope.Tenant()
		ids = append(ids, id)
	}
	settings := []string{
		"RELAY_DATABASE_URL=" + d.url(relayRole),
		"RELAY_NAMESPACE=" + application.Namespace,
		"RELAY_TENANTS=" + strings.Join(ids, ","),
		"RELAY_KAFKA_BROKERS=" + strings.Join(s.kafka.Addrs(), ","),
		"RELAY_KAFKA_TOPIC=" + t.name,
		"RELAY_KAFKA_MIN_INSYNC_REPLICAS=1",
	}
	if t.ledger != "" {
		settings = append(settings, "RELAY_DELIVERY=exactly-once", "RELAY_TRANSACTIONAL_ID="+t.name, "RELAY_INSTANCE=0", "RELAY_LEDGER_TOPIC="+t.ledger)
	}
	return settings
}

// tried are the settings that our own environment hands on to the relay.
func tried() (all []string) {
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "RELAY_") {
			all = append(all, variable)
		}
	}
	slices.Sort(all)
	return all
}

// awaitReady waits for the relay's own word that it can work.
func (r *relayProcess) awaitReady(ctx context.Context) error {
	return r.watched(ctx, func(ctx context.Context) error { return poll(ctx, time.Minute, r.ready) })
}

func (r *relayProcess) ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.address+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	why, _ := io.ReadAll(response.Body) // only to tell what is wrong
	if response.StatusCode != http.StatusOK {
		return errors.New(strings.TrimSpace(string(why)))
	}
	return nil
}

// watched calls do with a context that ends when the relay does.
func (r *relayProcess) watched(ctx context.Context, do func(context.Context) error) error {
	return watched(ctx, r.process, do)
}

// stop ends the relay in an orderly way.
func (r *relayProcess) stop() error { return r.process.Stop(syscall.SIGTERM, relayGrace) }
