package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/internal/childproc"
	"outboxrelay/internal/kafkaserver"
	"outboxrelay/internal/moments"
	"outboxrelay/internal/pgserver"
)

const (
	topicName  = "chaos.events"
	ledgerName = "chaos.ledger"
	partitions = 6
)

// stage is what the test runs on.
type stage struct {
	options
	progress io.Writer

	dir      *childproc.TempDir
	program  string // the relay
	postgres *pgserver.Server
	kafka    *kafkaserver.Cluster
	client   *kgo.Client      // reaches the brokers through the routes, as all clients do
	links    []*proxy         // a relay's way to the database each
	routes   []*proxy         // the way to a broker each
	watched  []*moments.Proxy // behind those, to kill relays at chosen moments
	relays   []*relay
}

// newStage builds the relay and starts the servers. Close it after use.
func newStage(ctx context.Context, o options, progress io.Writer) (s *stage, err error) {
	s = &stage{options: o, progress: progress}
	if err := s.set(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *stage) set(ctx context.Context) (err error) {
	s.note("building the relay, starting PostgreSQL and three Kafka brokers")
	if s.dir, err = childproc.NewTempDir("relay-chaos-", nil); err != nil {
		return err
	}
	if err := s.build(ctx); err != nil {
		return err
	}
	if s.postgres, err = pgserver.Start(ctx, pgserver.Options{Durable: true}); err != nil {
		return err
	}
	if err := s.makeDatabase(ctx); err != nil {
		return err
	}
	ports, err := childproc.FreePorts(brokers + s.options.relays)
	if err != nil {
		return err
	}
	if err := s.startKafka(ctx, ports[:brokers]); err != nil {
		return err
	}
	for i, port := range ports[brokers:] {
		watch := &moments.Watch{}
		watched, err := moments.Postgres(childproc.Loopback(0), childproc.Loopback(s.postgres.Port()), watch)
		if err != nil {
			return err
		}
		s.watched = append(s.watched, watched)
		link := newProxy(fmt.Sprintf("database-%d", i+1), port, watched.Addr())
		s.links = append(s.links, link)
		if err := link.open(); err != nil {
			return err
		}
		s.relays = append(s.relays, s.newRelay(i+1, link, watch))
	}
	return nil
}

// watchOf is the watch of the relay with a client.id, nil if it is another client's. Relays run when all have been made.
func (s *stage) watchOf(clientID string) *moments.Watch {
	for _, r := range s.relays {
		if r.name == clientID {
			return r.watch
		}
	}
	return nil
}

// build makes the program under test.
func (s *stage) build(ctx context.Context) (err error) {
	if s.logs == "" {
		s.logs = s.dir.Path
	} else if s.logs, err = filepath.Abs(s.logs); err != nil {
		return err
	}
	if err := os.MkdirAll(s.logs, 0o755); err != nil {
		return err
	}
	s.program = filepath.Join(s.dir.Path, "relay")
	arguments := []string{"build", "-o", s.program}
	if s.race {
		arguments = append(arguments, "-race")
	}
	if s.without != "" {
		overlay, err := mutations[s.without].overlay(s.dir.Path)
		if err != nil {
			return err
		}
		arguments = append(arguments, "-overlay", overlay)
	}
	output, err := exec.CommandContext(ctx, "go", append(arguments, "outboxrelay/cmd/relay")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the relay (run this in the module's folder): %w\n%s", err, output)
	}
	return nil
}

// startKafka starts the brokers behind proxies on some ports, and makes the topic.
func (s *stage) startKafka(ctx context.Context, ports []int) (err error) {
	advertised := map[int]int{}
	for i, port := range ports {
		advertised[i+1] = port
	}
	if s.kafka, err = kafkaserver.Start(ctx, kafkaserver.Options{
		Brokers: brokers, Advertised: advertised,
		// So seldom that brokers don't end in time what a relay has left open, which another is to do.
		Settings: []string{"transaction.abort.timed.out.transaction.cleanup.interval.ms=60000"},
	}); err != nil {
		return err
	}
	for i, upstream := range s.kafka.Addrs() {
		watched, err := moments.Kafka(childproc.Loopback(0), upstream, s.watchOf)
		if err != nil {
			return err
		}
		s.watched = append(s.watched, watched)
		route := newProxy(fmt.Sprintf("broker-%d", i+1), ports[i], watched.Addr())
		s.routes = append(s.routes, route)
		if err := route.open(); err != nil {
			return err
		}
	}
	if s.client, err = kgo.NewClient(kgo.SeedBrokers(s.addresses()...), kgo.MetadataMinAge(100*time.Millisecond)); err != nil {
		return err
	}
	least := "2"
	admin := kadm.NewClient(s.client)
	_, err = admin.CreateTopic(ctx, partitions, brokers, map[string]*string{"min.insync.replicas": &least}, topicName)
	if err != nil {
		return fmt.Errorf("create topic: %w", err)
	}
	if s.delivery != exactly {
		return nil
	}
	compact, segment, soon, little := "compact", "1048576", "10000", "0.01" // so that it is compacted all the time
	_, err = admin.CreateTopic(ctx, 64, brokers, map[string]*string{
		"min.insync.replicas": &least, "cleanup.policy": &compact, "segment.bytes": &segment, "segment.ms": &soon,
		"min.cleanable.dirty.ratio": &little,
	}, ledgerName)
	if err != nil {
		return fmt.Errorf("create ledger: %w", err)
	}
	return nil
}

// addresses are where clients find the brokers.
func (s *stage) addresses() (all []string) {
	for _, route := range s.routes {
		all = append(all, route.address)
	}
	return all
}

// settings are the relays' environment. Retries come soon, so that what a fault has delayed shows before the next.
func (s *stage) settings(link *proxy) []string {
	var tenants []string
	for _, scope := range scopes() {
		if id, ok := scope.Tenant(); ok {
			tenants = append(tenants, id)
		}
	}
	return []string{
		"RELAY_DATABASE_URL=postgres://" + relayRole + "@" + link.address + "/" + databaseName + "?sslmode=disable",
		"RELAY_NAMESPACE=" + application.Namespace,
		"RELAY_TENANTS=" + strings.Join(tenants, ","),
		"RELAY_NON_TENANT=true",
		"RELAY_KAFKA_BROKERS=" + strings.Join(s.addresses(), ","),
		"RELAY_KAFKA_TOPIC=" + topicName,
		"RELAY_KAFKA_DELIVERY_TIMEOUT=" + deliveryTimeout.String(),
		"RELAY_CLAIM_LEASE=" + lease.String(),
		"RELAY_RETRY_DELAY=500ms",
		"RELAY_RETRY_MAX_DELAY=5s",
		"RELAY_BATCH_ROWS=100",
		"RELAY_HTTP_ADDRESS=off",
		"RELAY_DELIVERY=" + s.delivery,
		"RELAY_TRANSACTIONAL_ID=chaos",
		"RELAY_LEDGER_TOPIC=" + ledgerName,
	}
}

func (s *stage) close() (err error) {
	for _, r := range s.relays {
		r.kill()
		r.watches.Wait()
	}
	if s.client != nil {
		s.client.Close()
	}
	for _, p := range append(s.links, s.routes...) {
		err = errors.Join(err, p.cut())
	}
	for _, p := range s.watched {
		err = errors.Join(err, p.Close())
	}
	if s.kafka != nil {
		err = errors.Join(err, s.kafka.Close())
	}
	if s.postgres != nil {
		err = errors.Join(err, s.postgres.Stop())
	}
	if s.dir != nil {
		err = errors.Join(err, s.dir.Remove())
	}
	return err
}

// note tells whoever waits what is going on.
func (s *stage) note(format string, args ...any) {
	fmt.Fprintf(s.progress, time.Now().Format("15:04:05.0")+" "+format+"\n", args...)
}
